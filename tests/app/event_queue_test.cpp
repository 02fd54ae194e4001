// SPDX-License-Identifier: Apache-2.0
// Storms of process events in simulated time: nobody waits long for another's.
#include "app/event_queue.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

namespace affinityd::app {
namespace {

using namespace std::chrono_literals;
using host::ProcEvent;
using Kind = TaskNews::Kind;
using Event = ProcEvent::Kind;

class EventQueueTest : public testing::Test {
  protected:
    void event(Event kind, int pid, int tid, std::string_view name = "", int parent = 0) {
        ProcEvent event{.kind = kind, .pid = pid, .tid = tid, .parent_pid = parent};
        std::ranges::copy(name, event.name.begin());
        queue_.add(event, asked_, now_);
    }
    void exec(int pid) { event(Event::exec, pid, pid); }
    void rename(int pid) { event(Event::comm, pid, pid, "x"); }
    [[nodiscard]] std::optional<ProcessNews> next() { return queue_.next(now_); }
    [[nodiscard]] std::vector<std::pair<Kind, int>> news() {
        std::vector<std::pair<Kind, int>> all;
        const auto process = next();
        if (!process) return all;
        if (process->is_whole) all.emplace_back(Kind::process, process->pid);
        for (const auto& one : process->news)
            all.emplace_back(one.kind, one.tid);
        return all;
    }
    [[nodiscard]] std::vector<status::FloodStatus> floods() const { return queue_.floods().list(now_); }
    /// Events at an even rate for some time; `look`: whoever has a turn is looked at, which takes so long.
    unsigned storm(int pid, unsigned a_second, std::chrono::microseconds time,
                   Floods::Clock::duration cost = 1us) {
        unsigned looks = 0;
        const auto step = 1'000'000us / a_second;
        for (const auto end = now_ + time; now_ < end;) {
            rename(pid);
            while (const auto process = next()) {
                looks += process->pid == pid ? 1 : 0;
                queue_.floods().spent(process->pid, cost, now_ + cost);
                now_ += cost;
            }
            now_ += step;
        }
        return looks;
    }
    EventQueue queue_;
    EventQueue::Clock::time_point now_{1h};
    std::set<int> known_;
    std::map<int, uid_t> users_;
    bool crowded_ = false;
    std::vector<int> asked_for_; ///< processes whose user was asked for
    EventQueue::Asked asked_{[this](int pid) { return known_.contains(pid); }, false,
                             [this](int pid, const auto& crowded) {
                                 asked_for_.push_back(pid);
                                 const auto found = users_.find(pid);
                                 const uid_t user = found == users_.end() ? 65534 : found->second;
                                 crowded_ |= crowded(user);
                                 return user;
                             }};
};

TEST_F(EventQueueTest, EventsOfOneProcessAreOneLook) {
    exec(10);
    for (int i = 0; i < 900; ++i)
        rename(10);
    event(Event::fork, 10, 11); // its threads are read with it
    event(Event::comm, 10, 11, "y");
    event(Event::exit, 10, 11);
    EXPECT_EQ(news(), (std::vector{std::pair{Kind::process, 10}}));
    EXPECT_FALSE(next());
    EXPECT_TRUE(queue_.empty());
}

TEST_F(EventQueueTest, ThreadsOfProcessesThatNobodyKnowsAreOfNoInterest) {
    event(Event::fork, 10, 11);
    event(Event::comm, 10, 11, "y");
    event(Event::exit, 10, 11);
    event(Event::exit, 10, 10);
    event(Event::fork, 20, 20, "", 10); // a child of it
    EXPECT_FALSE(next());
}

TEST_F(EventQueueTest, AChildOfAProcessThatWaitsIsLookedAtToo) {
    exec(10);
    event(Event::fork, 20, 20, "", 10);
    EXPECT_EQ(next()->pid, 10);
    const auto child = next();
    ASSERT_TRUE(child);
    EXPECT_EQ(child->pid, 20);
    EXPECT_EQ(child->creator, 10);
}

TEST_F(EventQueueTest, ThreadsKeepTheirOrderAndTheirLastName) {
    known_ = {10};
    event(Event::fork, 10, 11);
    event(Event::comm, 10, 12, "first");
    event(Event::comm, 10, 12, "last");
    event(Event::exit, 10, 13);
    const auto process = next();
    ASSERT_TRUE(process);
    ASSERT_EQ(process->news.size(), 3U);
    EXPECT_EQ(process->news[0].kind, Kind::born);
    EXPECT_EQ(std::string_view(process->news[1].name.data()), "last");
    EXPECT_EQ(process->news[2].kind, Kind::gone);
}

TEST_F(EventQueueTest, AThreadThatWasBornAndHasEndedMeanwhileIsNoNews) {
    known_ = {10};
    event(Event::exit, 10, 11); // an older one of this number
    event(Event::fork, 10, 11);
    event(Event::comm, 10, 11, "y");
    event(Event::exit, 10, 11);
    EXPECT_EQ(news(), (std::vector{std::pair{Kind::gone, 11}}));
}

TEST_F(EventQueueTest, AThreadThatHasEndedMeanwhileCausesNoLookAtItsProcess) {
    known_ = {10};
    event(Event::fork, 10, 11);
    event(Event::exit, 10, 11);
    EXPECT_TRUE(news().empty());
}

TEST_F(EventQueueTest, AChangeOfTheProcessComesAfterOlderNewsOfItsThreads) {
    known_ = {10};
    event(Event::exit, 10, 11);
    exec(10);
    rename(10);
    EXPECT_EQ(news(), (std::vector{std::pair{Kind::gone, 11}, {Kind::process, 10}}));
}

TEST_F(EventQueueTest, ManyThreadsAtOnceAreOneLookAtTheProcess) {
    known_ = {10};
    for (int tid = 11; tid < 900; ++tid)
        event(Event::fork, 10, tid);
    EXPECT_EQ(news(), (std::vector{std::pair{Kind::process, 10}}));
}

TEST_F(EventQueueTest, ALaterProcessOfTheSameNumberComesAfterTheEndOfTheFirst) {
    known_ = {10};
    rename(10);
    event(Event::exit, 10, 10);
    exec(10);
    EXPECT_EQ(news(), (std::vector{std::pair{Kind::process, 10}, {Kind::gone, 10}, {Kind::process, 10}}));
}

TEST_F(EventQueueTest, NobodyWaitsBehindAnotherUsersManyProcesses) {
    for (int pid = 1000; pid < 5000; ++pid)
        exec(pid);
    users_[10] = 1000;
    exec(10);
    static_cast<void>(next());
    EXPECT_EQ(next()->pid, 10) << "one of the other user's comes first at most";
    EXPECT_TRUE(crowded_);
}

TEST_F(EventQueueTest, OneThatWaitsAloneIsServedWithoutAskingWhoseItIs) {
    for (int pid = 10; pid < 20; ++pid) {
        exec(pid);
        EXPECT_FALSE(queue_.empty());
        EXPECT_EQ(next()->pid, pid);
        EXPECT_FALSE(next());
    }
    EXPECT_TRUE(asked_for_.empty());
}

TEST_F(EventQueueTest, OneThatIsNotAloneAnyLongerWaitsInItsUsersTurn) {
    users_ = {{10, 1000}, {11, 1000}, {12, 1000}, {20, 0}};
    for (const int pid : {10, 11, 12, 20})
        exec(pid);
    EXPECT_EQ(asked_for_, (std::vector{10, 11, 12, 20}));
    EXPECT_EQ(next()->pid, 10);
    EXPECT_EQ(next()->pid, 20);
    EXPECT_EQ(next()->pid, 11);
    exec(30); // beside 12
    EXPECT_EQ(asked_for_.back(), 30);
    EXPECT_EQ(next()->pid, 12);
    EXPECT_EQ(next()->pid, 30);
    EXPECT_FALSE(next());
}

TEST_F(EventQueueTest, OfOneThatEndsWhileItWaitsAloneNobodyIsAsked) {
    exec(10);
    event(Event::exit, 10, 10);
    EXPECT_TRUE(asked_for_.empty()) << "that would be whoever owns the number now";
    EXPECT_EQ(news(), (std::vector{std::pair{Kind::process, 10}, std::pair{Kind::gone, 10}}));
}

TEST_F(EventQueueTest, WhatIsTooMuchIsLeftToAPassAndOthersHaveRoom) {
    for (int pid = 1000; pid < 11'000; ++pid)
        exec(pid);
    EXPECT_TRUE(queue_.take_left_out());
    EXPECT_FALSE(queue_.take_left_out()) << "told once";
    users_[10] = 1000;
    exec(10);
    EXPECT_FALSE(queue_.take_left_out());
    std::size_t waiting = 0;
    while (next())
        ++waiting;
    EXPECT_EQ(waiting, 4097U);
}

TEST_F(EventQueueTest, OneThatFloodsIsLookedAtEveryTwoSecondsInTheEndAndCounted) {
    users_[4711] = 1000;
    EXPECT_LT(storm(4711, 2000, 1s), 1010U) << "a thousand are one by one";
    storm(4711, 2000, 10s);
    EXPECT_LE(storm(4711, 2000, 20s), 11U);
    ASSERT_EQ(floods().size(), 1U);
    const auto flood = floods()[0];
    EXPECT_EQ(flood.pid, 4711);
    EXPECT_EQ(flood.uid, 1000U);
    EXPECT_NEAR(static_cast<double>(flood.events_a_minute), 120'000, 6'000);
    EXPECT_EQ(flood.pause, 2s);
    EXPECT_FALSE(flood.is_muted);
}

TEST_F(EventQueueTest, OneThatIsQuietAgainIsLookedAtAtOnce) {
    storm(10, 2000, 5s);
    EXPECT_LE(queue_.next_due(), now_ + 2s) << "the last of it is looked at, too";
    now_ += 3s;
    EXPECT_TRUE(next());
    EXPECT_TRUE(floods().empty());
    rename(10);
    EXPECT_TRUE(next());
}

TEST_F(EventQueueTest, LooksThatTakeLongMakeAFloodOfFewerEvents) {
    EXPECT_LE(storm(10, 100, 1s, 5ms), 40U);
    EXPECT_EQ(floods().size(), 1U);
    const auto look_at_large = [&] {
        rename(20);
        while (next()) {
        }
        queue_.floods().spent(20, 60ms, now_);
    };
    for (int i = 0; i < 9; ++i)
        look_at_large(); // a large process takes long once
    EXPECT_EQ(floods().size(), 1U);
    for (int i = 0; i < 2; ++i)
        look_at_large();
    EXPECT_EQ(floods().size(), 2U) << "but not all the time";
}

TEST_F(EventQueueTest, WhoTakesLongIsKnownHoweverManyStartProgramsMeanwhile) {
    int other = 100'000;
    unsigned looks = 0;
    for (int i = 0; i < 200; ++i) {
        rename(10);
        while (const auto process = next()) {
            looks += process->pid == 10 ? 1 : 0;
            queue_.floods().spent(process->pid, 15ms, now_);
        }
        for (int k = 0; k < 40; ++k) {
            exec(other++);
            (void)next();
        }
        now_ += 50ms;
    }
    EXPECT_LT(looks, 100U);
    EXPECT_EQ(floods().size(), 1U);
}

TEST_F(EventQueueTest, OneThatFloodsWhileOthersStartProgramsIsCounted) {
    int other = 100'000;
    for (int i = 0; i < 1100; ++i) {
        storm(10, 20'000, 50us);
        for (int k = 0; k < 16; ++k) {
            exec(other++);
            (void)next();
        }
    }
    ASSERT_EQ(floods().size(), 1U);
    EXPECT_EQ(floods()[0].pid, 10);
}

TEST_F(EventQueueTest, OneThatFloodsHoldsNobodyElseBack) {
    storm(10, 4000, 3s);
    rename(10);
    exec(20);
    EXPECT_EQ(next()->pid, 20);
    EXPECT_FALSE(next()) << "the pause is not over";
}

TEST_F(EventQueueTest, TheEndOfOneThatFloodsIsToldAtOnce) {
    known_ = {10};
    storm(10, 4000, 3s);
    rename(10);
    event(Event::exit, 10, 10);
    EXPECT_EQ(news().back(), (std::pair{Kind::gone, 10}));
    EXPECT_TRUE(floods().empty());
}

TEST_F(EventQueueTest, UnderOverflowFloodsAreMutedAndHeardAgainLater) {
    storm(10, 2000, 2s);
    EXPECT_TRUE(queue_.floods().muted(now_).empty());
    queue_.floods().overflowed(now_);
    EXPECT_EQ(queue_.floods().muted(now_), std::vector{10});
    EXPECT_TRUE(floods()[0].is_muted);
    unsigned looks = 0;
    for (int i = 0; i < 900; ++i, now_ += 10ms) // nothing is heard of it
        while (next())
            ++looks;
    EXPECT_GE(looks, 3U) << "it is looked at all the same";
    EXPECT_LE(looks, 12U);
    now_ += 2s;
    EXPECT_TRUE(queue_.floods().muted(now_).empty()) << "after ten seconds";
    storm(10, 2000, 2s);
    queue_.floods().overflowed(now_);
    now_ += 15s;
    EXPECT_EQ(queue_.floods().muted(now_), std::vector{10}) << "longer the second time";
    now_ += 6s;
    EXPECT_TRUE(queue_.floods().muted(now_).empty());
}

TEST_F(EventQueueTest, TooManyEventsToListenToAreMutedWithoutOverflow) {
    storm(10, 20'000, 1s);
    EXPECT_EQ(queue_.floods().muted(now_), std::vector{10});
    EXPECT_LE(queue_.next_due(), now_ + 10s);
}

TEST_F(EventQueueTest, MemoryIsBounded) {
    for (int pid = 1; pid < 300'000; ++pid) {
        exec(pid);
        static_cast<void>(next());
        if (pid % 100 == 0) now_ += 1ms;
    }
    for (int pid = 400'000; pid < 400'100; ++pid)
        for (int i = 0; i < 6000; ++i)
            rename(pid);
    EXPECT_LE(queue_.floods().muted(now_).size(), 16U);
    EXPECT_LE(floods().size(), 64U);
}

TEST_F(EventQueueTest, SaysWhatHasChangedAndWhatIsOnlyLookedAtAgain) {
    rename(10);
    auto process = next();
    ASSERT_TRUE(process);
    EXPECT_TRUE(process->has_changed);
    EXPECT_FALSE(process->is_executed);
    rename(10);
    exec(10);
    process = next();
    EXPECT_TRUE(process && process->is_executed);
    event(Event::ids, 10, 11);
    EXPECT_EQ(news(), (std::vector{std::pair{Kind::process, 10}}));
    queue_.later().look_at(10, 65534, now_ + 1s);
    EXPECT_EQ(queue_.next_due(), now_ + 1s);
    EXPECT_FALSE(next());
    now_ += 1s;
    process = next();
    ASSERT_TRUE(process);
    EXPECT_EQ(process->pid, 10);
    EXPECT_FALSE(process->has_changed);
    EXPECT_FALSE(next());
}

TEST_F(EventQueueTest, ChildrenOfStrangersAreLookedAtLaterIfThatMatters) {
    event(Event::fork, 20, 20, "", 5);
    now_ += 10s;
    EXPECT_FALSE(next());
    asked_.all_children = true;
    event(Event::fork, 20, 20, "", 5);
    EXPECT_FALSE(next()) << "it is still what its parent is";
    now_ += 100ms;
    EXPECT_EQ(news(), (std::vector{std::pair{Kind::process, 20}}));
    event(Event::exit, 20, 20);
    now_ += 10s;
    EXPECT_FALSE(next());
}

TEST_F(EventQueueTest, WhoWaitsAnywayIsLookedAtOnce) {
    known_.insert(10);
    event(Event::fork, 10, 11);
    queue_.later().look_at(10, 65534, now_);
    const auto process = next();
    ASSERT_TRUE(process);
    ASSERT_FALSE(process->news.empty());
    EXPECT_EQ(process->news.back().kind, Kind::process);
    EXPECT_FALSE(next());
}

TEST_F(EventQueueTest, TheEndOfAMainThreadIsNotThatOfAProcessUnderPolicy) {
    for (const int pid : {10, 20})
        queue_.later().look_at(pid, 65534, now_ + 1s);
    known_.insert(10);
    event(Event::exit, 10, 10);
    event(Event::exit, 20, 20);
    EXPECT_EQ(queue_.later().size(), 1U) << "process 10 may have other threads that settle";
}

} // namespace
} // namespace affinityd::app
