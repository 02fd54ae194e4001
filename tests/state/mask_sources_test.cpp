// SPDX-License-Identifier: Apache-2.0
#include "state/mask_sources.hpp"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace affinityd::state {
namespace {

const CpuSet few = CpuSet::range(0, 3);
const MaskSource everywhere{few, "p"};

TEST(MaskSources, AMaskHoldsAsLongAsOneThreadHasIt) {
    MaskSources sources;
    sources.add(1, CpuSet{1}, everywhere);
    sources.add(1, CpuSet{1}, {CpuSet{0}, "q"});
    sources.remove(1, CpuSet{1});
    sources.age();
    sources.age();
    sources.age();
    EXPECT_EQ(sources.find(1, CpuSet{1}, few), (MaskSource{CpuSet{0}, "q"}))
        << "the newest record explains it";
    sources.remove(1, CpuSet{1});
    EXPECT_EQ(sources.former(), 1U);
    EXPECT_TRUE(sources.has_former(1));
    sources.age();
    EXPECT_TRUE(sources.find(1, CpuSet{1}, few));
    sources.add(1, CpuSet{1}, everywhere);
    EXPECT_FALSE(sources.has_former(1)) << "a thread has it again";
    sources.age();
    sources.age();
    EXPECT_TRUE(sources.find(1, CpuSet{1}, few));
    sources.remove(1, CpuSet{1});
    sources.age();
    sources.age();
    EXPECT_FALSE(sources.find(1, CpuSet{1}, few));
    EXPECT_EQ(sources.size(), 0U);
}

TEST(MaskSources, MasksAreComparedAsFarAsCpusAreOnline) {
    MaskSources sources;
    sources.add(1, CpuSet{1, 9}, everywhere);
    EXPECT_TRUE(sources.find(1, CpuSet{1}, few)) << "CPU 9 is offline, and the kernel leaves it out";
    EXPECT_TRUE(sources.find(1, CpuSet{1, 9}, few));
    EXPECT_FALSE(sources.find(1, CpuSet{1}, CpuSet::range(0, 9))) << "now it is online";
    EXPECT_TRUE(sources.find(1, CpuSet{1, 9}, CpuSet::range(0, 9)));
    sources.add(1, CpuSet{9}, everywhere);
    EXPECT_TRUE(sources.find(1, CpuSet{9}, CpuSet::range(0, 9)));
    sources.remove(1, CpuSet{9});
    EXPECT_TRUE(sources.find(1, CpuSet{1}, few));
    sources.remove(1, CpuSet{1, 9});
    EXPECT_TRUE(sources.find(1, CpuSet{1}, few)) << "a former one";
}

TEST(MaskSources, OfFormerMasksTheOldestMakesRoom) {
    MaskSources sources;
    const CpuSet online = CpuSet::range(0, 31);
    constexpr int most = static_cast<int>(MaskSources::most_former);
    sources.add(7, CpuSet{1}, everywhere);
    for (int pid = 1000; pid < 1000 + 3 * most; ++pid)
        sources.add_former(pid, CpuSet{1}, everywhere);
    EXPECT_EQ(sources.former(), MaskSources::most_former);
    EXPECT_FALSE(sources.find(1000, CpuSet{1}, online));
    EXPECT_FALSE(sources.has_former(1000));
    EXPECT_TRUE(sources.find(1000 + 3 * most - 1, CpuSet{1}, online));
    EXPECT_TRUE(sources.find(7, CpuSet{1}, online)) << "what a thread has now makes no room";
    // One process of very many masks takes no more than all others.
    for (unsigned mask = 1; mask < 100000; ++mask) {
        const std::uint64_t word = mask;
        sources.add_former(5, CpuSet::from_words({&word, 1}), everywhere);
    }
    EXPECT_EQ(sources.former(), MaskSources::most_former);
    sources.age();
    sources.age();
    EXPECT_FALSE(sources.find(5, CpuSet{3}, online)) << "expired, if not dropped yet";
    for (int i = 0; i < 100; ++i)
        sources.age();
    EXPECT_EQ(sources.former(), 0U);
    EXPECT_EQ(sources.size(), 1U);
}

TEST(MaskSources, FormerOnesOfProcessesThatEndedAreForgottenTogether) {
    MaskSources sources;
    for (const int pid : {1, 2, 3, 2}) {
        sources.add(pid, CpuSet{static_cast<unsigned>(pid)}, everywhere);
        sources.remove(pid, CpuSet{static_cast<unsigned>(pid)});
    }
    sources.add(4, CpuSet{1}, everywhere);
    sources.forget_former({2, 3, 4, 5});
    EXPECT_TRUE(sources.find(1, CpuSet{1}, few));
    EXPECT_FALSE(sources.find(2, CpuSet{2}, few));
    EXPECT_FALSE(sources.find(3, CpuSet{3}, few));
    EXPECT_TRUE(sources.find(4, CpuSet{1}, few)) << "it has it still";
    EXPECT_EQ(sources.former(), 1U);
    sources.remove(4, CpuSet{1});
    sources.forget_former({1, 4});
    EXPECT_EQ(sources.size(), 0U);
    sources.forget_former({1});
}

TEST(MaskSources, AgreeWithAPlainModelOverRandomChanges) {
    std::mt19937 random(7);
    MaskSources sources;
    std::map<std::pair<int, unsigned>, int> live;
    std::map<std::pair<int, unsigned>, int> former; // ages left
    for (int step = 0; step < 50000; ++step) {
        const std::pair key{static_cast<int>(random() % 20 + 1), static_cast<unsigned>(random() % 4)};
        switch (random() % 8) {
        case 0:
        case 1:
        case 2:
            sources.add(key.first, CpuSet{key.second}, everywhere);
            ++live[key];
            former.erase(key);
            break;
        case 3:
        case 4:
        case 5:
            sources.remove(key.first, CpuSet{key.second});
            if (live[key] > 0 && --live[key] == 0) former[key] = 2;
            break;
        case 6:
            sources.add_former(key.first, CpuSet{key.second}, everywhere);
            if (live[key] == 0) former[key] = 2;
            break;
        default:
            if (random() % 10 != 0) break;
            sources.age();
            for (auto& [at, left] : former)
                --left;
            std::erase_if(former, [](const auto& entry) { return entry.second == 0; });
        }
        const bool known = live[key] > 0 || former.contains(key);
        ASSERT_EQ(sources.find(key.first, CpuSet{key.second}, few).has_value(), known) << step;
        ASSERT_EQ(sources.former(), former.size()) << step;
    }
}

} // namespace
} // namespace affinityd::state
