// SPDX-License-Identifier: Apache-2.0
#include "irq/reader.hpp"

#include <gtest/gtest.h>

namespace affinityd::irq {
namespace {

TEST(IrqThreads, Names) {
    EXPECT_EQ(parse_irq_thread("irq/24-eth0-TxRx-0"), 24U);
    EXPECT_EQ(parse_irq_thread("irq/124-s-eth0"), 124U);
    EXPECT_EQ(parse_irq_thread("irq/9-acpi"), 9U);
    for (const char* name : {"irq/", "irq/-x", "irq/24", "irq/a-b", "xirq/24-a", "irq/99999999999-a", ""})
        EXPECT_EQ(parse_irq_thread(name), std::nullopt) << name;
}

TEST(IrqThreads, AreAttachedToTheirLine) {
    InterruptTable table;
    table.irqs.resize(2);
    table.irqs[0].number = 24;
    table.irqs[1].number = 25;
    table.irqs[1].threads = {7}; // of an earlier reading
    const std::vector<NamedThread> threads = {
        {110, "irq/24-s-eth0"}, {100, "irq/24-eth0"}, {120, "irq/26-eth1"}, {130, "kthreadd"}};
    attach_threads(table, threads);
    EXPECT_EQ(table.irqs[0].threads, (std::vector<int>{100, 110}));
    EXPECT_TRUE(table.irqs[1].threads.empty());
}

} // namespace
} // namespace affinityd::irq
