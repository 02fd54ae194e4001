// SPDX-License-Identifier: Apache-2.0
#include "behaviours/neighbours/irqbalance.hpp"

#include <numeric>

#include <gtest/gtest.h>

namespace affinityd::behaviours {
namespace {

using Irqs = std::vector<unsigned>;

TEST(IrqbalanceSetup, IsReadWhateverItIs) {
    EXPECT_EQ(parse_irqbalance_setup(
                  "SLEEP 10 IRQ 31 LOAD 0 DIFF 0 CLASS 5 IRQ 30 LOAD 1 DIFF 2 CLASS 0 BANNED 00000003"),
              (Irqs{30, 31}));
    EXPECT_EQ(parse_irqbalance_setup("SLEEP 10 BANNED 0"), Irqs{});
    EXPECT_EQ(parse_irqbalance_setup("IRQ IRQ 5 IRQ x IRQ 99999999999 IRQ"), Irqs{5});
    EXPECT_EQ(parse_irqbalance_setup(""), Irqs{});
    EXPECT_TRUE(is_setup_answer("SLEEP 10 BANNED 0"));
    EXPECT_FALSE(is_setup_answer("IRQ 5"));
}

TEST(IrqbalanceBan, IsOneLineOfBoundedLength) {
    EXPECT_EQ(ban_request({9, 30}), "settings ban irqs 9 30");
    EXPECT_EQ(ban_request({}), "settings ban irqs NONE");
    Irqs many(51);
    std::iota(many.begin(), many.end(), 1000U);
    EXPECT_TRUE(ban_request(many)) << "51 numbers of four digits with their spaces are 254 bytes";
    many.push_back(2000);
    EXPECT_FALSE(ban_request(many)) << "it would read only the first of them";
}

TEST(IrqbalanceSocketName, HoldsAProcessId) {
    EXPECT_TRUE(is_irqbalance_socket("irqbalance812.sock"));
    for (const char* name : {"irqbalance.sock", "irqbalance8 1.sock", "irqbalance81.socket",
                             "xirqbalance81.sock", "irqbalance../x.sock", "irqbalance8\n1.sock"})
        EXPECT_FALSE(is_irqbalance_socket(name)) << name;
}

TEST(IrqbalanceRecord, IsReadAsItWasWritten) {
    const BannedLists lists{{"irqbalance812.sock", {9, 31}}, {"irqbalance813.sock", {}}};
    EXPECT_EQ(print_record(lists), "irqbalance812.sock 9 31\nirqbalance813.sock\n");
    EXPECT_EQ(parse_record(print_record(lists)), lists);
    EXPECT_EQ(parse_record("\n\na 3 x 1\n"), (BannedLists{{"a", {1, 3}}}));
    EXPECT_TRUE(parse_record("").empty());
}

} // namespace
} // namespace affinityd::behaviours
