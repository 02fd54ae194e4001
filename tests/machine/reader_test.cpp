// SPDX-License-Identifier: Apache-2.0
// What stays known of an interface that does not answer for a moment.
#include "machine/reader.hpp"

#include <cerrno>

#include <gtest/gtest.h>

namespace affinityd::machine {
namespace {

netdev::Nic nic(unsigned ifindex, std::optional<unsigned> queues, int fault) {
    netdev::Nic nic;
    nic.name = "eth0";
    nic.ifindex = ifindex;
    nic.folder = 70 + ifindex;
    nic.channels_fault = fault;
    if (queues) nic.channels = netdev::Channels{.combined = queues, .max_combined = 8};
    return nic;
}

TEST(ChannelsThatCannotBeRead, AreThoseThatTheInterfaceHad) {
    const auto before = nic(2, 4, 0);
    auto silent = nic(2, {}, ENODEV);
    keep_channels(silent, &before);
    EXPECT_EQ(silent.channels, before.channels);
    EXPECT_EQ(silent.channels_fault, ENODEV) << "so that it is asked again";
    auto another = nic(3, {}, ENODEV);
    keep_channels(another, &before);
    EXPECT_FALSE(another.channels) << "another interface has the name now";
    auto first = nic(2, {}, ENODEV);
    keep_channels(first, nullptr);
    EXPECT_FALSE(first.channels);
    auto without = nic(2, {}, 0); // another driver is bound to it
    keep_channels(without, &before);
    EXPECT_FALSE(without.channels);
}

TEST(ChannelsThatCannotBeRead, AreAskedForAgain) {
    Machine machine;
    machine.nics = {nic(2, 4, 0), nic(3, {}, ENODEV)};
    unsigned asked = 0;
    bool is_present = false;
    const auto ask = [&](std::span<netdev::Nic> nics) -> Result<void> {
        ++asked;
        EXPECT_EQ(nics.size(), 1U);
        if (is_present)
            nics[0].channels = netdev::Channels{.combined = 2, .max_combined = 8};
        else
            nics[0].channels_fault = ENODEV;
        return {};
    };
    EXPECT_FALSE(ask_again(machine, ask));
    EXPECT_EQ(machine.nics[1].channels_fault, ENODEV);
    is_present = true;
    EXPECT_TRUE(ask_again(machine, ask));
    EXPECT_EQ(machine.nics[1].channels->combined, 2U);
    EXPECT_FALSE(ask_again(machine, ask));
    EXPECT_EQ(asked, 2U) << "those that have answered are not asked";
}

} // namespace
} // namespace affinityd::machine
