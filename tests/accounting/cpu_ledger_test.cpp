// SPDX-License-Identifier: Apache-2.0
#include "app/cpu_ledger.hpp"
#include "app/passive_cost.hpp"

#include <gtest/gtest.h>

namespace affinityd::app {
namespace {

using Entry = CpuLedger::Entry;

TEST(CpuLedger, OldProcessesCountFromNowNewOnesFromTheirBirth) {
    CpuLedger ledger(1000);
    ledger.look({{{10, 500}, 1, 40.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 0);
    ledger.look({{{10, 500}, 1, 42.0}, {{11, 1500}, 1, 3.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 5);
}

TEST(CpuLedger, ChildThatEndedIsInItsParentsTime) {
    CpuLedger ledger(1000);
    ledger.look({{{10, 2000}, 1, 1.0}, {{11, 2100}, 10, 5.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 6);
    ledger.look({{{10, 2000}, 1, 8.0}}); // 1.5 more of its own and all 5.5 of the child
    EXPECT_DOUBLE_EQ(ledger.total(), 8);
}

TEST(CpuLedger, WhatAChildUsedBeforeItCountedIsNotCountedByItsParent) {
    CpuLedger ledger(1000);
    ledger.look({{{10, 500}, 1, 1.0}, {{11, 600}, 10, 100.0}});
    ledger.look({{{10, 500}, 1, 1.0}, {{11, 600}, 10, 103.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 3);
    ledger.look({{{10, 500}, 1, 104.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 3);
}

TEST(CpuLedger, WithoutAParentOfTheSetTheLastFigureStays) {
    CpuLedger ledger(0);
    ledger.look({{{10, 5}, 1, 2.0}});
    ledger.note({{10, 5}, 1, 2.75}); // as it ended
    ledger.look({});
    EXPECT_DOUBLE_EQ(ledger.total(), 2.75);
    ledger.note({{12, 6}, 1, 0.5}); // came and went between two looks
    ledger.look({});
    EXPECT_DOUBLE_EQ(ledger.total(), 3.25);
}

TEST(CpuLedger, RecycledNumbersAreOtherProcesses) {
    CpuLedger ledger(0);
    ledger.look({{{10, 5}, 1, 2.0}, {{20, 7}, 10, 1.0}});
    ledger.look({{{10, 9}, 1, 0.5}}); // another 10, younger than the 20 that ended
    EXPECT_DOUBLE_EQ(ledger.total(), 3.5);
}

TEST(CpuLedger, GrandchildrenAreCountedOnceWhenTheirParentEndedToo) {
    CpuLedger ledger(0);
    ledger.look({{{10, 5}, 1, 0.0}});
    ledger.note({{12, 8}, 11, 3.0});  // came and went
    ledger.note({{11, 7}, 10, 3.5});  // waited for it, then ended
    ledger.look({{{10, 5}, 1, 3.5}}); // waited for that one
    EXPECT_DOUBLE_EQ(ledger.total(), 3.5);

    CpuLedger unnoticed(0);
    unnoticed.look({{{10, 5}, 1, 0.0}, {{11, 7}, 10, 0.5}, {{12, 8}, 11, 1.0}});
    unnoticed.look({{{10, 5}, 1, 4.0}});
    EXPECT_DOUBLE_EQ(unnoticed.total(), 4);

    CpuLedger orphans(0);
    orphans.look({{{11, 7}, 1, 0.5}, {{12, 8}, 11, 1.0}});
    orphans.note({{11, 7}, 1, 2.5}); // the last figures of the parent hold the child's
    orphans.look({});
    EXPECT_DOUBLE_EQ(orphans.total(), 2.5);
}

TEST(CpuLedger, NeverFalls) {
    CpuLedger ledger(0);
    ledger.look({{{10, 5}, 1, 1.0}, {{11, 6}, 10, 4.0}});
    ledger.look({{{10, 5}, 1, 1.0}}); // ended, but not waited for yet
    EXPECT_DOUBLE_EQ(ledger.total(), 5);
    ledger.look({{{10, 5}, 1, 5.0}});
    EXPECT_DOUBLE_EQ(ledger.total(), 5);
}

TEST(NetworkSoftirqs, ArePricedByTheirNumber) {
    constexpr const char* stat = "cpu  10 0 20 3000 5 1 400 0 0 0\ncpu0 10 0 20 3000 5 1 400 0 0 0\n";
    constexpr const char* softirqs =
        "                    CPU0       CPU1\n          HI:          0          0\n       TIMER:        100  "
        "      200\n"
        "      NET_TX:         50          0\n      NET_RX:        150         100\n";
    EXPECT_DOUBLE_EQ(network_softirq_seconds(stat, softirqs, 100).value(), 4.0 * 300 / 600);
    EXPECT_FALSE(network_softirq_seconds("", softirqs, 100));
    EXPECT_FALSE(network_softirq_seconds(stat, "", 100));
    EXPECT_FALSE(network_softirq_seconds("cpu  1 2 3", "NET_RX: x y\n", 100));
}

} // namespace
} // namespace affinityd::app
