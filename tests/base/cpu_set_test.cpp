// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_set.hpp"

#include <array>
#include <string>
#include <unordered_set>
#include <utility>

#include <gtest/gtest.h>

namespace affinityd {
namespace {

struct ListCase {
    const char* text;
    CpuSet set;
    const char* printed;
};

class CpuSetLists : public testing::TestWithParam<ListCase> {};

TEST_P(CpuSetLists, AreReadAndPrinted) {
    const auto set = CpuSet::parse_list(GetParam().text);
    ASSERT_TRUE(set) << set.error().to_string();
    EXPECT_EQ(*set, GetParam().set);
    EXPECT_EQ(set->to_list(), GetParam().printed);
}

INSTANTIATE_TEST_SUITE_P(
    Table, CpuSetLists,
    testing::Values(ListCase{"", {}, ""}, ListCase{"\n", {}, ""}, ListCase{"0", {0}, "0"},
                    ListCase{"0-3,8\n", {0, 1, 2, 3, 8}, "0-3,8"},
                    ListCase{"8,0-3", {0, 1, 2, 3, 8}, "0-3,8"}, ListCase{"5,5,5", {5}, "5"},
                    ListCase{"0-1,2-3", {0, 1, 2, 3}, "0-3"}, ListCase{"63-64", {63, 64}, "63-64"},
                    ListCase{"127,128", {127, 128}, "127-128"},
                    ListCase{"1023-1025", {1023, 1024, 1025}, "1023-1025"}, ListCase{"4095", {4095}, "4095"},
                    ListCase{" 1 , 3 ", {1, 3}, "1,3"}, ListCase{"1048575", {1048575}, "1048575"}));

class BadCpuLists : public testing::TestWithParam<const char*> {};

TEST_P(BadCpuLists, AreRefusedWithWords) {
    const auto set = CpuSet::parse_list(GetParam());
    ASSERT_FALSE(set);
    EXPECT_FALSE(set.error().message.empty());
    EXPECT_LT(set.error().to_string().size(), 300U) << "a long hostile text must not be repeated whole";
}

INSTANTIATE_TEST_SUITE_P(Table, BadCpuLists,
                         testing::Values("a", "1-", "-1", "1--2", "3-1", "1,,2", ",1", "1,", "1 2", "0x1",
                                         "1.5", "1-2-3", "1048576", "0-4294967295", "99999999999999999999",
                                         "-"));

TEST(CpuSetList, RangesThatOverlapAreOneSet) {
    for (const auto& text :
         {"0-300,10-500,64-127,501", "501,64-127,10-500,0-300", "0-64,63-501", "0-501,0-501,200,0-501"})
        EXPECT_EQ(CpuSet::parse_list(text), CpuSet::range(0, 501)) << text;
    EXPECT_EQ(CpuSet::parse_list("0-127,256-383,128-191"), CpuSet::range(0, 191) | CpuSet::range(256, 383));
    EXPECT_EQ(CpuSet::parse_list("0-1048575")->count(), CpuSet::max_cpu + 1);
}

/// A damaged or hostile recording may have one; each range may name a million CPUs.
TEST(CpuSetList, ALongListIsRefused) {
    std::string text = "0-1048575";
    for (unsigned i = 0; i < 10'000; ++i)
        text += ",0-1048575";
    EXPECT_FALSE(CpuSet::parse_list(text));
}

TEST(CpuSetList, LongGarbageIsCutInTheMessage) {
    const auto set = CpuSet::parse_list(std::string(100000, 'x'));
    ASSERT_FALSE(set);
    EXPECT_LT(set.error().to_string().size(), 300U);
}

struct MaskCase {
    const char* text;
    CpuSet set;
    const char* printed;
};

class CpuSetMasks : public testing::TestWithParam<MaskCase> {};

TEST_P(CpuSetMasks, AreReadAndPrinted) {
    const auto set = CpuSet::parse_mask(GetParam().text);
    ASSERT_TRUE(set) << set.error().to_string();
    EXPECT_EQ(*set, GetParam().set);
    EXPECT_EQ(set->to_mask(), GetParam().printed);
}

INSTANTIATE_TEST_SUITE_P(Table, CpuSetMasks,
                         testing::Values(MaskCase{"0", {}, "0"}, MaskCase{"00000000,00000000", {}, "0"},
                                         MaskCase{"f\n", {0, 1, 2, 3}, "f"}, MaskCase{"0x3", {0, 1}, "3"},
                                         MaskCase{"00000001,00000000", {32}, "1,00000000"},
                                         MaskCase{"1,00000000,00000000", {64}, "1,00000000,00000000"},
                                         MaskCase{"80000000,00000000", {63}, "80000000,00000000"},
                                         MaskCase{"FF", {0, 1, 2, 3, 4, 5, 6, 7}, "ff"}));

class BadCpuMasks : public testing::TestWithParam<const char*> {};

TEST_P(BadCpuMasks, AreRefused) { EXPECT_FALSE(CpuSet::parse_mask(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Table, BadCpuMasks,
                         testing::Values("", "g", "1,", ",1", "123456789", "1 1", "-1", "0x"));

TEST(CpuSetMask, ManyCpusGoThroughBothForms) {
    CpuSet set;
    for (unsigned cpu = 0; cpu < 8192; cpu += 7)
        set.insert(cpu);
    const auto by_mask = CpuSet::parse_mask(set.to_mask());
    const auto by_list = CpuSet::parse_list(set.to_list());
    ASSERT_TRUE(by_mask && by_list);
    EXPECT_EQ(*by_mask, set);
    EXPECT_EQ(*by_list, set);
    EXPECT_EQ(set.count(), 8192U / 7 + 1);
}

TEST(CpuSetMask, TooLongIsRefused) {
    std::string text = "1";
    for (int i = 0; i < 40000; ++i)
        text += ",00000000";
    EXPECT_FALSE(CpuSet::parse_mask(text));
}

TEST(CpuSet, IsComparedAsASetWhateverItsHistory) {
    CpuSet grown{1, 5000};
    grown.erase(5000);
    EXPECT_EQ(grown, CpuSet{1});
    EXPECT_EQ(std::hash<CpuSet>{}(grown), std::hash<CpuSet>{}(CpuSet{1}));
    EXPECT_EQ(*CpuSet::parse_mask("00000000,00000002"), CpuSet{1});
    const std::array<std::uint64_t, 4> words{2, 0, 0, 0};
    EXPECT_EQ(CpuSet::from_words(words), CpuSet{1});
    EXPECT_EQ(CpuSet::from_words(words).words().size(), 1U);
}

TEST(CpuSet, SetArithmetic) {
    const CpuSet low = CpuSet::range(0, 99);
    const CpuSet high = CpuSet::range(50, 1500);
    EXPECT_EQ(low | high, CpuSet::range(0, 1500));
    EXPECT_EQ(low & high, CpuSet::range(50, 99));
    EXPECT_EQ(low - high, CpuSet::range(0, 49));
    EXPECT_EQ(high - low, CpuSet::range(100, 1500));
    EXPECT_TRUE((low & CpuSet{700}).empty());
    EXPECT_TRUE((low - low).empty());
}

TEST(CpuSet, Relations) {
    const CpuSet set{0, 64, 2000};
    EXPECT_TRUE(set.contains(CpuSet{64, 2000}));
    EXPECT_TRUE(set.contains(CpuSet{}));
    EXPECT_FALSE(set.contains(CpuSet{1}));
    EXPECT_FALSE((CpuSet{0}).contains(set));
    EXPECT_TRUE(set.intersects(CpuSet{2000, 3000}));
    EXPECT_FALSE(set.intersects(CpuSet{1, 63, 1999}));
    EXPECT_FALSE(set.contains(100000));
    EXPECT_EQ(set.first(), 0U);
    EXPECT_EQ(set.last(), 2000U);
    EXPECT_EQ((CpuSet{65}).first(), 65U);
}

TEST(CpuSet, IteratesInOrder) {
    const CpuSet set{3000, 1, 63, 64};
    EXPECT_EQ(set.to_vector(), (std::vector<unsigned>{1, 63, 64, 3000}));
    EXPECT_EQ(CpuSet{}.begin(), CpuSet{}.end());
}

TEST(CpuSet, NumbersBeyondTheBoundTakeNoMemory) {
    CpuSet set;
    set.insert(CpuSet::max_cpu + 1);
    set.insert(0xffffffffU);
    EXPECT_TRUE(set.empty());
    set.erase(0xffffffffU);
    EXPECT_EQ(CpuSet::range(CpuSet::max_cpu, 0xffffffffU).count(), 1U);
    EXPECT_TRUE(CpuSet::range(5, 4).empty());
}

} // namespace
} // namespace affinityd
