// SPDX-License-Identifier: Apache-2.0
// The conversation with irqbalance: what is asked, what is given back, and that none of it ever waits.
#include "behaviours/neighbours/irqbalance.hpp"
#include "support/fake_irqbalance.hpp"
#include "support/soon.hpp"
#include "support/tree.hpp"

#include <chrono>
#include <fstream>
#include <numeric>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace affinityd::behaviours {
namespace {

using affinityd::test::soon; // the server obeys after the sender of a request has gone on
using Irqs = std::vector<unsigned>;
using Clock = std::chrono::steady_clock;

class IrqbalanceTest : public testing::Test {
  protected:
    IrqbalanceTest() {
        tree_.folder("sockets");
        irqbalance_.emplace(tree_.path("sockets"), tree_.path("irqbalance.banned"));
    }
    /// As an event loop does. Remembers the longest turn.
    void talk() {
        while (irqbalance_->is_talking()) {
            pollfd waiting{irqbalance_->fd(), POLLIN, 0};
            ASSERT_EQ(::poll(&waiting, 1, 60'000), 1) << "a conversation always comes to its end";
            turn([&] { irqbalance_->handle(); });
        }
    }
    template <class Turn>
    void turn(Turn&& turn) {
        const auto began = Clock::now();
        turn();
        longest_ = std::max(longest_, Clock::now() - began);
    }
    void keep_off(Irqs irqs) {
        turn([&] { irqbalance_->keep_off(std::move(irqs)); });
        talk();
    }
    void give_back() {
        turn([&] { irqbalance_->give_back(); });
        talk();
    }
    [[nodiscard]] std::string record() const {
        std::ostringstream text;
        text << std::ifstream(tree_.path("irqbalance.banned")).rdbuf();
        return text.str();
    }
    [[nodiscard]] std::string sockets() const { return tree_.path("sockets"); }

    test::Tree tree_;
    std::optional<Irqbalance> irqbalance_;
    Clock::duration longest_{};
};

TEST_F(IrqbalanceTest, LeavesInterruptsUnderPolicyAloneAndGetsItsListBack) {
    test::FakeIrqbalance fake(sockets(), 812, {9, 31});
    keep_off({30, 31});
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9, 30, 31}; })) << "its own and those under policy";
    EXPECT_EQ(record(), "irqbalance812.sock 9 31\n");
    EXPECT_EQ(irqbalance_->note(),
              "it runs, but leaves the 2 interrupts under policy alone until affinityd ends");
    EXPECT_TRUE(irqbalance_->keeps_off());
    const auto requests = fake.requests();
    keep_off({30, 31});
    EXPECT_EQ(fake.requests(), requests) << "it is told once";
    keep_off({40});
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9, 31, 40}; }));
    give_back();
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9, 31}; }));
    EXPECT_EQ(record(), "");
    EXPECT_TRUE(irqbalance_->take_faults().empty());
}

TEST_F(IrqbalanceTest, BansOfADaemonThatWasKilledAreUndoneByTheNext) {
    test::FakeIrqbalance fake(sockets(), 812, {9});
    keep_off({30, 31});
    ASSERT_TRUE(soon([&] { return fake.banned() == Irqs{9, 30, 31}; }));
    irqbalance_.emplace(sockets(), tree_.path("irqbalance.banned"));
    keep_off({});
    give_back();
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9}; }));
}

TEST_F(IrqbalanceTest, WithoutInterruptsUnderPolicyNothingIsAsked) {
    test::FakeIrqbalance fake(sockets(), 812, {9});
    keep_off({});
    EXPECT_EQ(irqbalance_->note(), "no interrupt is under policy");
    EXPECT_FALSE(irqbalance_->keeps_off());
    give_back();
    EXPECT_EQ(fake.requests(), 0U);
    EXPECT_EQ(record(), "");
}

TEST_F(IrqbalanceTest, WithoutASocketAPersonIsToldWhatToDo) {
    keep_off({30});
    EXPECT_NE(irqbalance_->note().find("--banirq"), std::string::npos);
    EXPECT_FALSE(irqbalance_->keeps_off());
    irqbalance_.emplace(tree_.path("missing"), tree_.path("irqbalance.banned"));
    keep_off({30});
    EXPECT_NE(irqbalance_->note().find("--banirq"), std::string::npos);
    EXPECT_FALSE(irqbalance_->keeps_off());
}

TEST_F(IrqbalanceTest, TooLongAListIsNotSent) {
    test::FakeIrqbalance fake(sockets(), 812, {9});
    Irqs many(100);
    std::iota(many.begin(), many.end(), 1000U);
    keep_off(many);
    EXPECT_NE(irqbalance_->note().find("so many interrupts"), std::string::npos);
    EXPECT_EQ(fake.banned(), Irqs{9});
    keep_off({30});
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9, 30}; })) << "a shorter one is";
}

TEST_F(IrqbalanceTest, ASilentInstanceHoldsNothingUp) {
    test::FakeIrqbalance silent(sockets(), 811, {9});
    test::FakeIrqbalance fake(sockets(), 812, {9});
    silent.hang();
    keep_off({30});
    EXPECT_NE(irqbalance_->note().find("no answer in time"), std::string::npos);
    EXPECT_FALSE(irqbalance_->keeps_off());
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9, 30}; })) << "the other one is told all the same";
    EXPECT_LT(longest_, std::chrono::milliseconds(150)) << "no turn waits for an answer";
}

TEST_F(IrqbalanceTest, AStopDuringAConversationGivesTheListBack) {
    test::FakeIrqbalance fake(sockets(), 812, {9});
    irqbalance_->keep_off({30});
    irqbalance_->give_back();
    talk();
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // requests under way arrive
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9}; }));
}

TEST_F(IrqbalanceTest, AnInstanceThatEndedIsForgotten) {
    {
        test::FakeIrqbalance fake(sockets(), 812, {9});
        keep_off({30});
        ASSERT_TRUE(soon([&] { return fake.banned() == Irqs{9, 30}; }));
    }
    give_back();
    EXPECT_EQ(irqbalance_->take_faults().size(), 1U) << "it cannot be told any more";
    test::FakeIrqbalance next(sockets(), 900, {7});
    keep_off({30});
    EXPECT_TRUE(soon([&] { return next.banned() == Irqs{7, 30}; }));
}

TEST_F(IrqbalanceTest, AFolderThatAnotherUserCanWriteToIsNotUsed) {
    test::FakeIrqbalance fake(sockets(), 812, {9});
    ASSERT_EQ(::chmod(sockets().c_str(), 01777), 0);
    keep_off({30});
    EXPECT_EQ(fake.requests(), 0U);
    EXPECT_NE(irqbalance_->note().find("no socket"), std::string::npos);
}

TEST_F(IrqbalanceTest, WhatCouldNotBeUndoneIsNotAsked) {
    test::FakeIrqbalance fake(sockets(), 812, {9});
    irqbalance_.emplace(sockets(), tree_.path("missing/irqbalance.banned"));
    keep_off({30});
    EXPECT_EQ(fake.banned(), Irqs{9});
    EXPECT_NE(irqbalance_->note().find("irqbalance.banned"), std::string::npos);
}

/// Bytes that are no answer, whatever they are.
TEST_F(IrqbalanceTest, AnAnswerThatCannotBeReadIsSaid) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = sockets() + "/irqbalance814.sock";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener, 5), 0);
    irqbalance_->keep_off({30});
    const int peer = ::accept(listener, nullptr, nullptr);
    const std::string flood(1U << 16, '\xff');
    EXPECT_GT(::send(peer, flood.data(), flood.size(), MSG_NOSIGNAL | MSG_DONTWAIT), 0);
    ::close(peer);
    talk();
    // irqbalance has ended the talk: a question that comes later meets a closed connection.
    EXPECT_TRUE(irqbalance_->note().find("cannot be read") != std::string::npos ||
                irqbalance_->note().find("cannot send") != std::string::npos)
        << irqbalance_->note();
    ::close(listener);
}

} // namespace
} // namespace affinityd::behaviours
