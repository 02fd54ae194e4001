// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/activity.hpp"
#include "irq/reader.hpp"

#include <gtest/gtest.h>

namespace affinityd::ttcp {
namespace {

const char* const head = "           CPU0       CPU1\n";

Activity with(const std::string& interrupts, const char* softirqs = "", const char* stat = "") {
    return {0, parse_cpu_times(stat, 100), irq::parse_interrupts(head + interrupts),
            parse_softirqs(softirqs)};
}

TEST(Softirqs, SumsOverCpusAndNothingFromOtherLines) {
    const auto counts =
        parse_softirqs("                    CPU0       CPU1\n          HI:          1          0\n"
                       "      NET_RX:     654408     475965\n   BROKEN:  1 x\n  EMPTY:\n: 5\nrest");
    EXPECT_EQ(counts, (SoftirqCounts{{"HI", 1}, {"NET_RX", 1130373}}));
    EXPECT_TRUE(parse_softirqs("").empty());
}

TEST(KernelCounts, IpisOfX86AreReschedulesAndCalls) {
    const auto first =
        with(" 24:  1  2  PCI-MSI 1-edge a\nLOC: 5 5 Local timer interrupts\nRES: 10 20 Rescheduling\n"
             "CAL: 100 200 Function call interrupts\nTLB: 7 7 TLB shootdowns\n",
             "NET_RX: 5 5\nNET_TX: 1 1\n");
    const auto last =
        with(" 24:  4  4  PCI-MSI 1-edge a\nLOC: 99 99 Local timer interrupts\nRES: 11 22 Rescheduling\n"
             "CAL: 101 202 Function call interrupts\nTLB: 9 9 TLB shootdowns\n",
             "NET_RX: 6 9\nNET_TX: 1 1\n");
    const auto counts = counts_between(first, last);
    EXPECT_EQ(counts.interrupts, 5U);
    EXPECT_EQ(counts.ipis, 6U); // shootdowns are calls; timers are not counted
    EXPECT_EQ(counts.net_rx, 5U);
    EXPECT_EQ(counts.net_tx, 0U);
}

TEST(KernelCounts, IpisOfArm) {
    const auto counts =
        counts_between(with("IPI0: 1 1 Rescheduling interrupts\nIPI1: 5 5 Function call interrupts\n"),
                       with("IPI0: 2 1 Rescheduling interrupts\nIPI1: 5 9 Function call interrupts\n"));
    EXPECT_EQ(counts.ipis, 5U);
}

TEST(KernelCounts, WhatIsNotCountedHasNoValue) {
    const auto none = counts_between(with(""), with(""));
    EXPECT_EQ(none.interrupts, 0U);
    EXPECT_FALSE(none.ipis || none.net_rx || none.net_tx);
    // A counter that began anew.
    EXPECT_FALSE(counts_between(with("RES: 9 9 x\n"), with("RES: 1 1 x\n")).ipis);
    EXPECT_FALSE(counts_between(with("", "NET_RX: 9\n"), with("", "NET_RX: 1\n")).net_rx);
}

TEST(KernelCounts, InterruptTimeIsToldWhereAnyWasEverMeasured) {
    EXPECT_FALSE(tells_interrupt_time(with("", "", "cpu0 100 0 50 9 0 0 10\ncpu1 0 0 0 0 0 0 0\n")));
    EXPECT_TRUE(tells_interrupt_time(with("", "", "cpu0 100 0 50 9 0 0 10\ncpu1 0 0 0 0 0 1 0\n")));
    EXPECT_FALSE(tells_interrupt_time({}));
}

} // namespace
} // namespace affinityd::ttcp
