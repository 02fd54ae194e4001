// SPDX-License-Identifier: Apache-2.0
#include "enforcer/irqbalance.hpp"
#include "support/fake_irqbalance.hpp"
#include "support/tree.hpp"

#include <chrono>
#include <numeric>

#include <gtest/gtest.h>

namespace affinityd::enforcer {
namespace {

using Irqs = std::vector<unsigned>;

/// The server obeys after the request's sender has gone on.
template <class Done>
bool soon(Done done) {
    for (int i = 0; i < 1000 && !done(); ++i)
        ::usleep(5000);
    return done();
}

TEST(IrqbalanceSetup, IsReadWhateverItIs) {
    EXPECT_EQ(parse_irqbalance_setup(
                  "SLEEP 10 IRQ 31 LOAD 0 DIFF 0 CLASS 5 IRQ 30 LOAD 1 DIFF 2 CLASS 0 BANNED 00000003"),
              (Irqs{30, 31}));
    EXPECT_EQ(parse_irqbalance_setup("SLEEP 10 BANNED 0"), Irqs{});
    EXPECT_EQ(parse_irqbalance_setup("IRQ IRQ 5 IRQ x IRQ 99999999999 IRQ"), Irqs{5});
    EXPECT_EQ(parse_irqbalance_setup(""), Irqs{});
}

TEST(IrqbalanceSocket, IsAskedAndTold) {
    const test::Tree tree;
    const Irqbalance irqbalance(tree.path());
    EXPECT_TRUE(irqbalance.sockets().empty());
    test::FakeIrqbalance fake(tree.path(), 812, {9});
    const std::string socket = "irqbalance812.sock";
    EXPECT_EQ(irqbalance.sockets(), std::vector<std::string>{socket});
    EXPECT_EQ(irqbalance.banned(socket), (Irqs{9}));
    ASSERT_TRUE(irqbalance.ban(socket, {9, 30, 31}));
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9, 30, 31}; }));
    ASSERT_TRUE(irqbalance.ban(socket, {}));
    EXPECT_TRUE(soon([&] { return fake.banned().empty(); }));
}

TEST(IrqbalanceSocket, FaultsAreSaidAndNothingHangs) {
    const test::Tree tree;
    const Irqbalance irqbalance(tree.path());
    EXPECT_FALSE(irqbalance.banned("irqbalance1.sock"));
    EXPECT_FALSE(irqbalance.ban(std::string(200, 'x'), {1}));
    test::FakeIrqbalance fake(tree.path(), 812, {9});
    Irqs many(100);
    std::iota(many.begin(), many.end(), 1000U);
    EXPECT_FALSE(irqbalance.ban("irqbalance812.sock", many)) << "it would read only the first of them";
    EXPECT_EQ(fake.banned(), Irqs{9});
    fake.hang();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(irqbalance.banned("irqbalance812.sock"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    EXPECT_TRUE(Irqbalance(tree.path() + "/none").sockets().empty());
}

} // namespace
} // namespace affinityd::enforcer
