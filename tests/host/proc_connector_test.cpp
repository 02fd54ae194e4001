// SPDX-License-Identifier: Apache-2.0
#include "host/proc_connector.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// These run on the real kernel and only ever look at children of their own. Where the connector cannot be had
// (an unprivileged user, a container) the test is that open() says so in words.
namespace affinityd::host {
namespace {

using Kind = ProcEvent::Kind;
using Wanted = ProcConnector::Wanted;
using Events = std::vector<ProcEvent>;

bool never() { return false; }

/// Collects until `done` holds for what came, at most five seconds.
template <class Done>
Events collect(ProcConnector& connector, Done done) {
    Events events;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!done(events) && std::chrono::steady_clock::now() < end) {
        pollfd ready{connector.fd(), POLLIN, 0};
        ::poll(&ready, 1, 100);
        const auto drained = connector.drain([&](const ProcEvent& event) { events.push_back(event); }, never);
        EXPECT_EQ(drained.error, 0);
    }
    return events;
}

auto saw(Kind kind, int pid) {
    return [=](const Events& events) {
        return std::ranges::any_of(
            events, [=](const ProcEvent& e) { return e.kind == kind && e.pid == pid && e.tid == pid; });
    };
}

std::size_t count(const Events& events, Kind kind, int pid) {
    return static_cast<std::size_t>(
        std::ranges::count_if(events, [=](const ProcEvent& e) { return e.kind == kind && e.pid == pid; }));
}

/// A child that renames itself, makes and ends a thread, and becomes another program.
int start_child() {
    const int pid = ::fork();
    if (pid != 0) return pid;
    ::prctl(PR_SET_NAME, "renamed-child");
    std::thread([] { ::prctl(PR_SET_NAME, "its-thread"); }).join();
    ::execl("/bin/true", "true", static_cast<char*>(nullptr));
    ::_exit(1);
}

class ProcConnectorLive : public testing::Test {
  protected:
    void open(Wanted wanted) {
        auto opened = ProcConnector::open(wanted);
        if (!opened) {
            EXPECT_FALSE(opened.error().message.empty());
            EXPECT_NE(::geteuid(), 0U) << opened.error().to_string();
            return;
        }
        connector_ = std::move(*opened);
    }
    std::unique_ptr<ProcConnector> connector_;
};

TEST_F(ProcConnectorLive, TellsAChildsWholeLife) {
    open({.thread_forks = true, .process_forks = true, .exits = true, .thread_exits = true});
    if (!connector_) return;
    const int child = start_child();
    const auto events = collect(*connector_, saw(Kind::exit, child));
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(count(events, Kind::fork, child), 2U) << "itself and its thread";
    EXPECT_EQ(count(events, Kind::exec, child), 1U);
    EXPECT_EQ(count(events, Kind::exit, child), 2U);
    Events names;
    std::ranges::copy_if(events, std::back_inserter(names),
                         [=](const ProcEvent& e) { return e.kind == Kind::comm && e.pid == child; });
    ASSERT_EQ(names.size(), 2U) << "renames come after all others";
    EXPECT_EQ(names[0].comm(), "renamed-child");
    EXPECT_FALSE(names[0].is_thread());
    EXPECT_EQ(names[1].comm(), "its-thread");
    EXPECT_TRUE(names[1].is_thread());
    const auto born = std::ranges::find_if(
        events, [=](const ProcEvent& e) { return e.kind == Kind::fork && e.tid == child; });
    ASSERT_NE(born, events.end());
    EXPECT_EQ(born->parent_pid, ::getpid());
}

TEST_F(ProcConnectorLive, WhatIsNotWantedDoesNotArrive) {
    open({.exits = true});
    if (!connector_) return;
    const int child = start_child();
    const auto events = collect(*connector_, saw(Kind::exit, child));
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(count(events, Kind::fork, child), 0U);
    EXPECT_EQ(count(events, Kind::exit, child), 1U) << "the thread's end was not asked for";
    EXPECT_EQ(count(events, Kind::exec, child), 1U);
}

TEST_F(ProcConnectorLive, TheFilterCanBeWidenedAndNarrowed) {
    open({});
    if (!connector_) return;
    ASSERT_TRUE(connector_->set_filter({.process_forks = true, .exits = true}));
    int child = start_child();
    auto events = collect(*connector_, saw(Kind::exit, child));
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(count(events, Kind::fork, child), 1U);
    ASSERT_TRUE(connector_->set_filter({.exits = true, .execs = false, .renames = false}));
    child = start_child();
    events = collect(*connector_, saw(Kind::exit, child));
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(count(events, Kind::exec, child) + count(events, Kind::comm, child) +
                  count(events, Kind::fork, child),
              0U);
    EXPECT_EQ(count(events, Kind::exit, child), 1U);
}

TEST_F(ProcConnectorLive, AQuietConnectorIsEmptyAndNeverBlocks) {
    open({.execs = false, .renames = false});
    if (!connector_) return;
    const auto drained =
        connector_->drain([](const ProcEvent&) { FAIL() << "nothing was asked for"; }, never);
    EXPECT_EQ(drained.events, 0U);
    EXPECT_FALSE(drained.lost);
    EXPECT_FALSE(drained.more);
}

TEST_F(ProcConnectorLive, StopsWithinABatchWhenTimeIsOutAndLosesNothing) {
    open({});
    if (!connector_) return;
    const int child = ::fork();
    if (child == 0) {
        for (int i = 0; i < 50; ++i)
            ::prctl(PR_SET_NAME, ("name-" + std::to_string(i)).c_str());
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    std::size_t names = 0;
    const auto sink = [&](const ProcEvent& event) {
        if (event.pid == child) ++names;
    };
    bool is_first = true;
    while (true) {
        const auto drained = connector_->drain(sink, [] { return true; });
        EXPECT_LE(drained.events, 2U) << "and a stranger's that is no rename";
        if (is_first) {
            EXPECT_TRUE(connector_->has_events()) << "in memory, whatever the socket says";
        }
        is_first = false;
        if (!drained.more) break;
    }
    EXPECT_EQ(names, 50U);
}

// Renames are the cheapest events to make: enough of them overflow any buffer, and the loss must be told.
TEST_F(ProcConnectorLive, LossIsTold) {
    open({});
    if (!connector_) return;
    const int child = ::fork();
    if (child == 0) {
        for (int i = 0; i < 120000; ++i)
            ::prctl(PR_SET_NAME, (i & 1) != 0 ? "storm-a" : "storm-b");
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    const int innocent = start_child();
    ::waitpid(innocent, nullptr, 0);
    bool lost = false, has_seen = false;
    std::size_t events = 0;
    bool was_cut = false;
    const auto sink = [&](const ProcEvent& event) {
        has_seen |= event.kind == Kind::exec && event.pid == innocent;
    };
    while (true) {
        const auto drained = connector_->drain(sink, never);
        lost = lost || drained.lost;
        was_cut = was_cut || drained.more;
        events += drained.events;
        EXPECT_LE(drained.events, ProcConnector::most_events + 32);
        if (!drained.more) break;
    }
    EXPECT_TRUE(lost);
    EXPECT_TRUE(has_seen) << "renames take no room from an exec";
    EXPECT_TRUE(was_cut) << "a storm is handed over in parts";
    EXPECT_GT(events, 1000U);
    const int next = start_child(); // and afterwards it works again
    const auto after = collect(*connector_, saw(Kind::exec, next));
    ::waitpid(next, nullptr, 0);
    EXPECT_EQ(count(after, Kind::exec, next), 1U);
}

} // namespace
} // namespace affinityd::host
