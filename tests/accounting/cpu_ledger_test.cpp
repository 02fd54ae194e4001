// SPDX-License-Identifier: Apache-2.0
#include "accounting/cpu_ledger.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace affinityd::accounting {
namespace {

using Entry = CpuLedger::Entry;

/// A whole look: these are alive.
void look(CpuLedger& ledger, const std::vector<Entry>& living) {
    ledger.begin_look();
    for (const auto& entry : living)
        ledger.see(entry);
    while (!ledger.finish_look([] { return true; })) { // the smallest slices there are
    }
}

TEST(CpuLedger, OldProcessesCountFromNowNewOnesFromTheirBirth) {
    CpuLedger ledger(1000);
    look(ledger, {{{10, 500}, 1, 40.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 0);
    look(ledger, {{{10, 500}, 1, 42.0}, {{11, 1500}, 1, 3.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 5);
}

TEST(CpuLedger, ChildThatEndedIsInItsParentsTime) {
    CpuLedger ledger(1000);
    look(ledger, {{{10, 2000}, 1, 1.0}, {{11, 2100}, 10, 5.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 6);
    look(ledger, {{{10, 2000}, 1, 8.0}}); // 1.5 more of its own and all 5.5 of the child
    EXPECT_DOUBLE_EQ(ledger.total(), 8);
}

TEST(CpuLedger, WhatAChildUsedBeforeItCountedIsNotCountedByItsParent) {
    CpuLedger ledger(1000);
    look(ledger, {{{10, 500}, 1, 1.0}, {{11, 600}, 10, 100.0}});
    look(ledger, {{{10, 500}, 1, 1.0}, {{11, 600}, 10, 103.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 3);
    look(ledger, {{{10, 500}, 1, 104.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 3);
}

TEST(CpuLedger, WithoutAParentOfTheSetTheLastFigureStays) {
    CpuLedger ledger(0);
    look(ledger, {{{10, 5}, 1, 2.0}});
    ledger.note({{10, 5}, 1, 2.75}); // as it ended
    look(ledger, {});
    EXPECT_DOUBLE_EQ(ledger.total(), 2.75);
    ledger.note({{12, 6}, 1, 0.5}); // came and went between two looks
    look(ledger, {});
    EXPECT_DOUBLE_EQ(ledger.total(), 3.25);
}

TEST(CpuLedger, RecycledNumbersAreOtherProcesses) {
    CpuLedger ledger(0);
    look(ledger, {{{10, 5}, 1, 2.0}, {{20, 7}, 10, 1.0}});
    look(ledger, {{{10, 9}, 1, 0.5}}); // another 10, younger than the 20 that ended
    EXPECT_DOUBLE_EQ(ledger.total(), 3.5);
}

TEST(CpuLedger, GrandchildrenAreCountedOnceWhenTheirParentEndedToo) {
    CpuLedger ledger(0);
    look(ledger, {{{10, 5}, 1, 0.0}});
    ledger.note({{12, 8}, 11, 3.0});   // came and went
    ledger.note({{11, 7}, 10, 3.5});   // waited for it, then ended
    look(ledger, {{{10, 5}, 1, 3.5}}); // waited for that one
    EXPECT_DOUBLE_EQ(ledger.total(), 3.5);

    CpuLedger unnoticed(0);
    look(unnoticed, {{{10, 5}, 1, 0.0}, {{11, 7}, 10, 0.5}, {{12, 8}, 11, 1.0}});
    look(unnoticed, {{{10, 5}, 1, 4.0}});
    EXPECT_DOUBLE_EQ(unnoticed.total(), 4);

    CpuLedger orphans(0);
    look(orphans, {{{11, 7}, 1, 0.5}, {{12, 8}, 11, 1.0}});
    orphans.note({{11, 7}, 1, 2.5}); // the last figures of the parent hold the child's
    look(orphans, {});
    EXPECT_DOUBLE_EQ(orphans.total(), 2.5);
}

TEST(CpuLedger, NeverFalls) {
    CpuLedger ledger(0);
    look(ledger, {{{10, 5}, 1, 1.0}, {{11, 6}, 10, 4.0}});
    look(ledger, {{{10, 5}, 1, 1.0}}); // ended, but not waited for yet
    EXPECT_DOUBLE_EQ(ledger.total(), 5);
    look(ledger, {{{10, 5}, 1, 5.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 5);
}

TEST(CpuLedger, AbandonedLookLosesNothing) {
    CpuLedger ledger(0);
    look(ledger, {{{10, 5}, 1, 1.0}, {{11, 6}, 1, 2.0}, {{12, 7}, 1, 3.0}});
    ledger.begin_look();
    ledger.see({{10, 5}, 1, 1.5});
    for (int i = 0; i < 4; ++i)
        EXPECT_FALSE(ledger.finish_look([] { return true; }));
    look(ledger, {{{10, 5}, 1, 2.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 7);
}

TEST(CpuLedger, RestartCountsKnownProcessesFromNow) {
    CpuLedger ledger(0);
    look(ledger, {{{10, 5}, 1, 8.0}, {{11, 6}, 10, 4.0}});
    ledger.restart(100);
    EXPECT_DOUBLE_EQ(ledger.total(), 0);
    look(ledger, {{{10, 5}, 1, 9.0}, {{11, 6}, 10, 4.5}, {{12, 200}, 1, 0.25}});
    EXPECT_DOUBLE_EQ(ledger.total(), 1.75);
    look(ledger,
         {{{10, 5}, 1, 13.5}, {{12, 200}, 1, 0.25}}); // waited for 11, whose 4 s of before do not count
    EXPECT_DOUBLE_EQ(ledger.total(), 1.75);
}

TEST(CpuLedger, ManyThatEndedAtOnceAreSettledInSlices) {
    constexpr int many = 50'000;
    std::vector<Entry> living{{{1, 1}, 0, 0.0}};
    for (int i = 2; i < many; ++i)
        living.push_back({{i, static_cast<std::uint64_t>(i)}, i / 2, 1.0});
    CpuLedger ledger(0);
    look(ledger, living);
    EXPECT_DOUBLE_EQ(ledger.total(), many - 2);
    ledger.begin_look();
    ledger.see({{1, 1}, 0, many - 2.0}); // waited for all
    unsigned asked = 0;
    EXPECT_FALSE(ledger.finish_look([&] { return ++asked == 100; }));
    EXPECT_EQ(asked, 100U);
    while (!ledger.finish_look([&] { return ++asked % 100 == 0; })) {
    }
    EXPECT_DOUBLE_EQ(ledger.total(), many - 2);
    EXPECT_LT(asked, 3U * many) << "a constant number of steps for each";
}

} // namespace
} // namespace affinityd::accounting
