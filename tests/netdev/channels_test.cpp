// SPDX-License-Identifier: Apache-2.0
// What is made of the kernel's answers about channels, where some interface does not answer it.
#include "netdev/channels.hpp"

#include <cerrno>
#include <map>

#include <gtest/gtest.h>

namespace affinityd::netdev {
namespace {

Channels combined(unsigned count) {
    Channels channels;
    channels.combined = count;
    channels.max_combined = 8;
    return channels;
}

/// Lists its interfaces until one of them fails, as the kernel does.
struct FakeEthtool {
    std::map<unsigned, std::pair<Channels, int>> interfaces; ///< by index, with the errno of each
    std::vector<unsigned> asked{};                           ///< one by one

    Result<ChannelAnswers> operator()(std::optional<unsigned> ifindex) {
        ChannelAnswers answers;
        if (ifindex) asked.push_back(*ifindex);
        for (const auto& [index, answer] : interfaces) {
            if (ifindex && *ifindex != index) continue;
            if (!ifindex && answer.second == EOPNOTSUPP) continue;
            answers.code = answer.second;
            if (answer.second != 0) break;
            answers.channels.emplace_back(index, answer.first);
        }
        return answers;
    }
};

std::vector<Nic> nics(unsigned count) {
    std::vector<Nic> list(count);
    for (unsigned i = 0; i < count; ++i)
        list[i].ifindex = i + 1;
    return list;
}

TEST(ChannelsOfAll, AreReadByOneListWhereEachAnswers) {
    FakeEthtool kernel{{{1, {{}, EOPNOTSUPP}}, {2, {combined(4), 0}}, {3, {combined(2), 0}}}};
    auto list = nics(3);
    ASSERT_TRUE(read_channels(list, std::ref(kernel)));
    EXPECT_FALSE(list[0].channels);
    EXPECT_EQ(list[1].channels, combined(4));
    EXPECT_EQ(list[2].channels, combined(2));
    EXPECT_EQ(kernel.asked, std::vector<unsigned>{}) << "a host of containers has thousands";
}

TEST(ChannelsOfAll, AreThereAlsoBehindOneThatIsNotPresent) {
    for (const unsigned absent : {1U, 2U, 3U}) {
        FakeEthtool kernel;
        for (const unsigned index : {1U, 2U, 3U, 4U})
            kernel.interfaces[index] = {combined(index), index == absent ? ENODEV : 0};
        kernel.interfaces[5] = {{}, EOPNOTSUPP};
        auto list = nics(5);
        ASSERT_TRUE(read_channels(list, std::ref(kernel)));
        for (const auto& nic : list) {
            const bool answers = nic.ifindex != absent && nic.ifindex != 5;
            EXPECT_EQ(nic.channels, answers ? std::optional(combined(nic.ifindex)) : std::nullopt)
                << nic.ifindex << " behind " << absent;
            EXPECT_EQ(nic.channels_fault, nic.ifindex == absent ? ENODEV : 0) << nic.ifindex;
        }
    }
}

TEST(ChannelsOfOne, AreAskedForAloneAndNotKnownWhileItIsNotPresent) {
    FakeEthtool kernel{{{1, {combined(4), EBUSY}}}};
    auto list = nics(1);
    ASSERT_TRUE(read_channels(list, std::ref(kernel)));
    EXPECT_FALSE(list[0].channels);
    EXPECT_EQ(list[0].channels_fault, EBUSY);
    kernel.interfaces[1].second = 0;
    list = nics(1);
    ASSERT_TRUE(read_channels(list, std::ref(kernel)));
    EXPECT_EQ(list[0].channels, combined(4));
    EXPECT_EQ(list[0].channels_fault, 0);
    EXPECT_EQ(kernel.asked, (std::vector{1U, 1U}));
}

} // namespace
} // namespace affinityd::netdev
