// SPDX-License-Identifier: Apache-2.0
#include "app/steer_guard.hpp"

#include <gtest/gtest.h>

namespace affinityd::app {
namespace {

using inventory::AcceptSockets;
using planner::ListenerTarget;
using std::chrono::minutes;
using std::chrono::seconds;

const std::vector<std::uint8_t> one_address{10, 0, 0, 1}, other_address{10, 0, 0, 2};

class Guard : public testing::Test {
  protected:
    struct Worker {
        int pid;
        std::size_t accepted; ///< at each look
        std::vector<std::uint8_t> address = one_address;
        bool is_steered = true;
        std::size_t work = 0; ///< as accepted
        std::size_t waiting = 0;
    };
    /// One look. True: it is withdrawn by it.
    bool look(const std::vector<Worker>& workers) {
        std::vector<AcceptSockets> found;
        std::vector<ListenerTarget> steered;
        for (const auto& [pid, accepted, address, is_steered, work, waiting] : workers) {
            const auto cookie = 100U + static_cast<unsigned>(pid);
            found.push_back({{pid, 1}, 0, {{cookie, 6, 80, address, true, -1, {pid}, accepted}}, 0});
            found.back().sockets[0].work = work;
            found.back().sockets[0].waiting = waiting;
            found.back().opened = opened_;
            if (is_steered) steered.push_back({{cookie, pid, 0, 6, 80}, CpuSet{0}, "web", pid, address});
        }
        std::vector<const AcceptSockets*> all;
        for (const auto& process : found)
            all.push_back(&process);
        const auto unfair = guard_.see("web", all, steered, now_);
        opened_ += opened_each_;
        for (const auto& one : unfair)
            EXPECT_EQ(one.port, 80);
        return !unfair.empty();
    }
    /// Looks every five seconds for so long. True: it was withdrawn once.
    bool watch(seconds duration, const std::vector<Worker>& workers) {
        bool is_withdrawn = false;
        for (const auto end = now_ + duration; now_ < end; now_ += seconds(5)) {
            const bool is_now = look(workers);
            EXPECT_FALSE(is_now && is_withdrawn) << "it is told once";
            is_withdrawn |= is_now;
        }
        return is_withdrawn;
    }
    /// Two workers.
    bool watch(seconds duration, std::size_t first, std::size_t second) {
        return watch(duration, {{1, first}, {2, second}});
    }
    SteerGuard guard_;
    std::uint64_t opened_ = 1'000'000, opened_each_ = 0; ///< connections in the namespace, by anybody
    SteerGuard::Clock::time_point now_{std::chrono::hours(1)};
};

TEST_F(Guard, WithdrawsWithinNinetySeconds) {
    EXPECT_FALSE(watch(seconds(300), 50, 60));
    EXPECT_TRUE(watch(seconds(90), 100, 2));
    EXPECT_TRUE(guard_.is_withdrawn("web", one_address, now_));
    EXPECT_FALSE(guard_.is_withdrawn("other", one_address, now_));
    EXPECT_GT(guard_.next_trial(now_), now_);
}

TEST_F(Guard, WhereConnectionsAreTooShortToBeSeenWorkIsCompared) {
    const std::vector<Worker> one_works{{1, 0, one_address, true, 20}, {2, 0, one_address, true, 0}};
    EXPECT_FALSE(watch(seconds(300), one_works)) << "few come: those that are there may be unlike each other";
    EXPECT_FALSE(watch(seconds(120), {{1, 0, one_address, true, 20}, {2, 0, one_address, true, 17}}));
    opened_each_ = 450;
    EXPECT_FALSE(watch(seconds(300), {{1, 0, one_address, true, 20}, {2, 0, one_address, true, 17}}));
    EXPECT_TRUE(watch(seconds(90), one_works));
}

TEST_F(Guard, WhereTheyAreSeenWorkCountsForNothing) {
    opened_each_ = 450;
    EXPECT_FALSE(watch(seconds(300), {{1, 200, one_address, true, 200}, {2, 200, one_address, true, 0}}));
}

TEST_F(Guard, TriesAgainAfterLongerAndLonger) {
    std::vector<SteerGuard::Clock::duration> pauses;
    for (int trial = 0; trial < 6; ++trial) {
        ASSERT_TRUE(watch(seconds(90), 100, 0)) << trial;
        const auto until = guard_.next_trial(now_);
        pauses.push_back(std::chrono::ceil<minutes>(until - now_));
        now_ = until;
        EXPECT_FALSE(guard_.is_withdrawn("web", one_address, now_));
    }
    for (std::size_t i = 1; i < pauses.size(); ++i)
        EXPECT_GE(pauses[i], pauses[i - 1]);
    EXPECT_LE(pauses.front(), SteerGuard::first_pause);
    EXPECT_GT(pauses.back(), SteerGuard::longest_pause - minutes(2));
    EXPECT_LE(pauses.back(), SteerGuard::longest_pause);
}

TEST_F(Guard, ForgetsLongPausesWhenItWentWellForAsLong) {
    ASSERT_TRUE(watch(seconds(90), 100, 0));
    now_ = guard_.next_trial(now_);
    EXPECT_FALSE(watch(SteerGuard::first_pause + minutes(5), 50, 50));
    ASSERT_TRUE(watch(seconds(120), 100, 0));
    EXPECT_LE(guard_.next_trial(now_) - now_, SteerGuard::first_pause);
}

TEST_F(Guard, ForgetsPoliciesThatDoNotSteer) {
    ASSERT_TRUE(watch(seconds(90), 100, 0));
    guard_.keep_only([](const std::string&) { return false; });
    EXPECT_FALSE(guard_.is_withdrawn("web", one_address, now_));
    EXPECT_EQ(guard_.next_trial(now_), SteerGuard::Clock::time_point::max());
}

/// What came while it was not steered, or before the daemon did, says nothing of a trial.
TEST_F(Guard, ATrialBeginsWithWhatComesInIt) {
    EXPECT_FALSE(look({{1, 500}, {2, 0}}));
    now_ += seconds(5);
    EXPECT_FALSE(watch(seconds(300), 50, 50));
    ASSERT_TRUE(watch(seconds(90), 100, 0));
    now_ = guard_.next_trial(now_);
    EXPECT_FALSE(look({{1, 5000}, {2, 0}}));
    now_ += seconds(5);
    EXPECT_FALSE(watch(minutes(10), 50, 50));
}

TEST_F(Guard, ServersOfOnePortAreComparedEachByItself) {
    EXPECT_FALSE(watch(minutes(5), {{1, 90}, {2, 90}, {3, 1, other_address}, {4, 1, other_address}}))
        << "one server is busier than the other";
    EXPECT_TRUE(watch(seconds(90), {{1, 90}, {2, 90}, {3, 10, other_address}, {4, 0, other_address}}))
        << "one of the other's workers gets all";
    EXPECT_TRUE(guard_.is_withdrawn("web", other_address, now_));
    EXPECT_FALSE(guard_.is_withdrawn("web", one_address, now_)) << "the first server has done nothing";
}

TEST_F(Guard, WhoIsNotSteeredDoesNotCount) {
    EXPECT_FALSE(watch(minutes(5), {{1, 10}, {2, 10}, {3, 500, one_address, false}}));
    EXPECT_TRUE(watch(seconds(90), {{1, 10}, {2, 0}, {3, 10, one_address, false}}))
        << "nor does it hide how the others share";
}

/// A database behind them makes each connection slow: few come, and all wait for one.
TEST_F(Guard, WhereTheyWaitForOneWorkerAloneItIsWithdrawn) {
    EXPECT_FALSE(watch(seconds(300), {{1, 1, one_address, true, 0, 4}, {2, 1, one_address, true, 0, 2}}));
    EXPECT_TRUE(watch(seconds(90), {{1, 1, one_address, true, 0, 4}, {2, 0, one_address, true, 0, 0}}));
    EXPECT_TRUE(guard_.is_withdrawn("web", one_address, now_));
}

/// While a server is reloaded, nobody is steered for a look or two.
TEST_F(Guard, AMinuteGoesOnWhereNobodyIsSteeredForALook) {
    bool is_withdrawn = false;
    for (int i = 0; i < 18 && !is_withdrawn; ++i, now_ += seconds(5)) {
        const bool is_steered = i % 3 != 2;
        is_withdrawn = look({{1, 100, one_address, is_steered}, {2, 2, one_address, is_steered}});
    }
    EXPECT_TRUE(is_withdrawn);
}

TEST_F(Guard, WhoHasNotBeenSteeredForLongIsForgottenAndOfVeryManySoon) {
    watch(seconds(40), 50, 50);
    const std::vector<Worker> not_steered{{1, 50, one_address, false}, {2, 50, one_address, false}};
    watch(minutes(1), not_steered);
    EXPECT_EQ(guard_.watched("web"), 1U);
    watch(minutes(2), not_steered);
    EXPECT_EQ(guard_.watched("web"), 0U);
    std::vector<Worker> many;
    for (int i = 0; i < 2000; ++i)
        many.push_back(
            {i, 1, {10, static_cast<std::uint8_t>(i / 2 / 256), static_cast<std::uint8_t>(i / 2)}});
    for (int turn = 0; turn < 4; ++turn, now_ += seconds(5)) {
        for (auto& worker : many)
            worker.address[0] = static_cast<std::uint8_t>(10 + turn);
        look(many);
        EXPECT_LE(guard_.watched("web"), 2024U + 1000U) << turn;
    }
}

} // namespace
} // namespace affinityd::app
