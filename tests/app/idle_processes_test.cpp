// SPDX-License-Identifier: Apache-2.0
// Processes that were read and take no connections.
#include "app/idle_processes.hpp"

#include <gtest/gtest.h>

namespace affinityd::app {
namespace {

constexpr TaskId master{10, 1}, worker{11, 2};
constexpr IdleProcesses::Clock::time_point begin{std::chrono::hours(1)};

bool yes(const TaskId&) { return true; }
bool no(const TaskId&) { return false; }

TEST(IdleProcesses, AMasterIsKnownAsSoonAsItsWorkersAreAndStaysOneWhileTheyChange) {
    IdleProcesses idle;
    for (unsigned i = 0; i < IdleProcesses::enough_reads; ++i)
        EXPECT_FALSE(idle.see(master, false, begin));
    EXPECT_FALSE(idle.note_workers(no)) << "its workers do not wait for connections yet";
    EXPECT_FALSE(idle.takes_none(master));
    EXPECT_TRUE(idle.rests(master, begin, {}));
    EXPECT_TRUE(idle.note_workers(yes)) << "also while it is not read itself";
    EXPECT_TRUE(idle.takes_none(master));
    EXPECT_FALSE(idle.note_workers(no)) << "a reload: other workers";
    EXPECT_TRUE(idle.takes_none(master));
    EXPECT_FALSE(idle.takes_none(worker));
}

TEST(IdleProcesses, AWorkerThatOpensItsListenerLateIsOneFromThenOn) {
    IdleProcesses idle;
    EXPECT_FALSE(idle.see(worker, false, begin));
    EXPECT_TRUE(idle.note_workers(yes));
    EXPECT_TRUE(idle.see(worker, true, begin)) << "who is served must be found out anew";
    EXPECT_FALSE(idle.takes_none(worker));
    EXPECT_FALSE(idle.see(worker, true, begin));
    EXPECT_FALSE(idle.note_workers(yes));
}

TEST(IdleProcesses, IsReadSeldomAfterSomeReads) {
    IdleProcesses idle;
    for (unsigned i = 0; i < IdleProcesses::enough_reads; ++i) {
        EXPECT_FALSE(idle.rests(master, begin, {}));
        static_cast<void>(idle.see(master, false, begin));
    }
    EXPECT_TRUE(idle.rests(master, begin, {}));
    EXPECT_FALSE(idle.rests(master, begin + IdleProcesses::pause, {}));
    idle.keep_only([](const TaskId& process) { return process != master; });
    EXPECT_FALSE(idle.rests(master, begin, {}));
}

TEST(IdleProcesses, HaveNoListenerOnlyIfAllIsKnownOfThem) {
    IdleProcesses idle;
    for (unsigned i = 0; i < IdleProcesses::enough_reads; ++i) {
        EXPECT_FALSE(idle.has_no_listener(worker)) << "it may open one yet";
        static_cast<void>(idle.see(worker, false, begin));
        static_cast<void>(idle.see(master, false, begin, {901}));
    }
    EXPECT_TRUE(idle.has_no_listener(worker));
    EXPECT_FALSE(idle.has_no_listener(master));
    static_cast<void>(idle.see(worker, false, begin, {}, false));
    EXPECT_FALSE(idle.has_no_listener(worker)) << "not all of its descriptors were looked at";
}

TEST(IdleProcesses, WhoseListenersNobodyIsSeenToTakeFromIsReadAgain) {
    IdleProcesses idle;
    for (unsigned i = 0; i < IdleProcesses::enough_reads; ++i)
        static_cast<void>(idle.see(worker, false, begin, {901}));
    UnattendedListeners unattended;
    unattended.see({902}, begin);
    EXPECT_TRUE(idle.rests(worker, begin, unattended));
    unattended.see({901, 902}, begin);
    EXPECT_FALSE(idle.rests(worker, begin, unattended)) << "it is late, or busy";
}

TEST(IdleProcesses, WhatIsWaitedForInVainIsGivenUp) {
    UnattendedListeners unattended;
    unattended.see({901}, begin);
    EXPECT_TRUE(unattended.given_up(begin).empty());
    unattended.see({901, 902}, begin + std::chrono::seconds(30));
    EXPECT_EQ(unattended.given_up(begin + UnattendedListeners::patience), std::set<std::uint64_t>{901});
    unattended.see({902}, begin + UnattendedListeners::patience);
    EXPECT_TRUE(unattended.given_up(begin + UnattendedListeners::patience).empty())
        << "somebody takes from it";
}

} // namespace
} // namespace affinityd::app
