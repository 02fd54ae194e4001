// SPDX-License-Identifier: Apache-2.0
// On the real kernel, with children of the test's own only.
#include "enforcer/enforcer.hpp"
#include "host/avoided.hpp"
#include "host/foreign_socket.hpp"
#include "host/patient_call.hpp"
#include "host/root.hpp"
#include "support/forked.hpp"
#include "support/held_socket.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::enforcer {
namespace {

using machine::ListenerCpu;
using machine::Setting;

/// A child with children of its own, as a server has; all end with the test.
class Family : public testing::Test {
  protected:
    void SetUp() override {
        number_ = ::socket(AF_INET, SOCK_STREAM, 0);
        ASSERT_EQ(::listen(number_, 8), 0);
        const auto own = host::ForeignFiles::open(::getpid());
        ASSERT_TRUE(own);
        cookie_ = own->socket(number_)->cookie().value();
        std::array<int, 2> pipe{};
        ASSERT_EQ(::pipe(pipe.data()), 0);
        master_ = child([&] {
            for (int& worker : workers_)
                worker = child([] {
                    while (true)
                        ::pause();
                });
            std::ignore = ::write(pipe[1], workers_.data(), sizeof workers_);
            while (true)
                ::wait(nullptr), ::pause();
        });
        ASSERT_EQ(::read(pipe[0], workers_.data(), sizeof workers_), static_cast<ssize_t>(sizeof workers_));
        ::close(pipe[0]);
        ::close(pipe[1]);
        ::close(number_); // they alone have it
    }
    void TearDown() override {
        for (const int pid : workers_)
            if (pid > 0) ::kill(pid, SIGKILL);
        end_master();
    }
    static int child(const std::function<void()>& life) {
        const int pid = ::fork();
        if (pid != 0) return pid;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        life();
        ::_exit(0);
    }
    void end_master() {
        if (master_ == 0) return;
        ::kill(master_, SIGKILL);
        ::waitpid(master_, nullptr, 0);
        master_ = 0;
    }
    [[nodiscard]] ListenerCpu subject(int worker) const { return {cookie_, worker, master_, number_, 80}; }
    [[nodiscard]] planner::Action action(int worker, const Setting& to) const {
        return {subject(worker), {}, to, "web", planner::Steering::accept};
    }
    host::Root root_ = *host::Root::open();
    std::unique_ptr<Enforcer> enforcer_ = make_real_enforcer(root_);
    int number_ = -1;
    std::uint64_t cookie_ = 0;
    int master_ = 0;
    std::array<int, 2> workers_{};
};

TEST_F(Family, AListenerIsToldACpuAndTakenBack) {
    EXPECT_EQ(enforcer_->present(subject(workers_[0])).value(), Setting());
    const auto applied = enforcer_->apply(action(workers_[0], CpuSet{1}));
    EXPECT_EQ(applied.outcome, Outcome::done);
    EXPECT_EQ(applied.granted, Setting(CpuSet{1}));
    EXPECT_EQ(enforcer_->present(subject(workers_[1])).value(), Setting(CpuSet{1}))
        << "it is the same listener";
    EXPECT_EQ(enforcer_->apply(action(workers_[0], CpuSet{})).outcome, Outcome::done);
    EXPECT_EQ(enforcer_->present(subject(workers_[0])).value(), Setting());
}

TEST_F(Family, AListenerWhoseLockSomebodyHoldsIsAvoided) {
    const int number = ::socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(::listen(number, 8), 0);
    const auto cookie = host::ForeignFiles::open(::getpid())->socket(number)->cookie().value();
    const Forked worker([] { ::pause(); }); // has it open, too
    struct stat status {};
    ASSERT_EQ(::fstat(number, &status), 0);
    const ListenerCpu listener{cookie, worker.pid(), ::getpid(), number, 80, status.st_ino};
    {
        const HeldSocket held(number);
        const auto applied = enforcer_->apply({listener, {}, CpuSet{1}, "web", planner::Steering::accept});
        EXPECT_EQ(applied.code, EINPROGRESS);
        EXPECT_EQ(applied.outcome, Outcome::busy) << "it may be made yet";
    }
    EXPECT_TRUE(host::is_avoided({host::Avoid::cookie, cookie}));
    EXPECT_TRUE(host::is_avoided({host::Avoid::inode, status.st_ino})) << "so who reads listeners knows it";
    EXPECT_TRUE(host::is_process_avoided(worker.pid()));
    EXPECT_FALSE(enforcer_->present(listener));
    const auto later = enforcer_->apply({listener, {}, CpuSet{1}, "web", planner::Steering::accept});
    EXPECT_EQ(later.code, EBUSY);
    EXPECT_EQ(later.outcome, Outcome::failed) << "it is avoided, and no call is made";
    ::close(number);
}

TEST_F(Family, OneThatWasFoundToMakeCallsWaitByItsInodeIsNotAsked) {
    auto listener = subject(workers_[0]);
    listener.inode = std::uint64_t{1} << 40; // no socket has it
    host::note_stuck({{{host::Avoid::inode, listener.inode}}, {}});
    const auto present = enforcer_->present(listener);
    ASSERT_FALSE(present);
    EXPECT_EQ(present.error().code, EBUSY);
}

TEST_F(Family, NobodyIsLookedForWhileItsProcessIsAvoided) {
    const int number = ::socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(::listen(number, 8), 0);
    const auto cookie = host::ForeignFiles::open(::getpid())->socket(number)->cookie().value();
    struct stat status {};
    ASSERT_EQ(::fstat(number, &status), 0);
    const Forked worker([number] {
        ::close(number);
        ::pause();
    });
    const ListenerCpu listener{cookie, worker.pid(), 1, number, 80, status.st_ino};
    host::note_stuck({{{host::Avoid::process, static_cast<std::uint64_t>(worker.pid())}}, {}});
    const auto present = enforcer_->present(listener);
    ASSERT_FALSE(present) << "though it is here";
    EXPECT_EQ(present.error().code, EBUSY) << "not: nobody has it open";
    ::close(number);
}

TEST_F(Family, ItIsFoundWhenItsWorkerHasEnded) {
    const int gone = workers_[0];
    ::kill(gone, SIGKILL);
    EXPECT_EQ(enforcer_->apply(action(gone, CpuSet{1})).outcome, Outcome::done) << "through the parent";
    // Without the parent, only that a worker has it is known, which is no child of a process any more.
    EXPECT_EQ(enforcer_->present(subject(workers_[1])).value(), Setting(CpuSet{1}));
}

TEST_F(Family, AnotherListenerUnderItsNumberIsNotTouched) {
    auto other = subject(workers_[0]);
    ++other.cookie;
    EXPECT_FALSE(enforcer_->present(other).value());
    EXPECT_EQ(enforcer_->apply({other, {}, CpuSet{1}, "web", planner::Steering::accept}).outcome,
              Outcome::gone);
    EXPECT_EQ(enforcer_->present(subject(workers_[0])).value(), Setting());
}

TEST_F(Family, WhatNobodyHasAnyMoreIsGone) {
    const auto last = subject(workers_[0]);
    for (const int pid : workers_)
        ::kill(pid, SIGKILL);
    end_master();
    for (int i = 0; i < 2000 && enforcer_->present(last).value(); ++i)
        ::usleep(10'000); // the workers end in their own time
    EXPECT_FALSE(enforcer_->present(last).value());
    EXPECT_EQ(enforcer_->apply({last, {}, CpuSet{1}, "web", planner::Steering::accept}).outcome,
              Outcome::gone);
}

/// A parent without the listener: its eldest and its newest child have it, and many between them do not.
class Crowd : public testing::Test {
  protected:
    static constexpr int between = 256;
    static int child(const std::function<void()>& life) {
        const int pid = ::fork();
        if (pid != 0) return pid;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        life();
        while (true)
            ::pause();
    }
    void SetUp() override {
        number_ = ::socket(AF_INET, SOCK_STREAM, 0);
        ASSERT_EQ(::listen(number_, 8), 0);
        cookie_ = host::ForeignFiles::open(::getpid())->socket(number_)->cookie().value();
        std::array<int, 2> closed{}, born{};
        ASSERT_EQ(::pipe(closed.data()), 0);
        ASSERT_EQ(::pipe(born.data()), 0);
        parent_ = child([&] {
            child([] {});
            for (int i = 0; i < between; ++i) {
                middle_ = child([&] {
                    ::close(number_);
                    std::ignore = ::write(closed[1], "", 1);
                });
                char done = 0;
                std::ignore = ::read(closed[0], &done, 1);
            }
            const std::array<int, 2> pids{middle_, child([] {})};
            ::close(number_);
            std::ignore = ::write(born[1], pids.data(), sizeof pids);
        });
        std::array<int, 2> pids{};
        ASSERT_EQ(::read(born[0], pids.data(), sizeof pids), static_cast<ssize_t>(sizeof pids));
        middle_ = pids[0];
        newest_ = pids[1];
        for (const int fd : {closed[0], closed[1], born[0], born[1], number_})
            ::close(fd);
    }
    void TearDown() override {
        if (parent_ <= 0) return;
        ::kill(parent_, SIGKILL); // the children end with it
        ::waitpid(parent_, nullptr, 0);
    }
    host::Root root_ = *host::Root::open();
    std::unique_ptr<Enforcer> enforcer_ = make_real_enforcer(root_);
    int number_ = -1, parent_ = 0, middle_ = 0, newest_ = 0;
    std::uint64_t cookie_ = 0;
};

TEST_F(Crowd, OnlyTheNewestOfVeryManyChildrenAreAsked) {
    const ListenerCpu subject{cookie_, middle_, parent_, number_, 80};
    EXPECT_EQ(enforcer_->present(subject).value(), Setting()) << "the newest has it";
    ::kill(newest_, SIGKILL);
    bool is_found = true;
    for (int i = 0; i < 1000 && is_found; ++i) {
        ::usleep(10'000); // it ends in its own time
        is_found = enforcer_->present(subject).value().has_value();
    }
    EXPECT_FALSE(is_found) << "the eldest is not asked: the event loop waits meanwhile";
}

/// As HAProxy does it: the kernel does not list a listener that is paused.
TEST(PausedListener, IsFoundUnderAnotherNumber) {
    const auto root = *host::Root::open();
    const auto enforcer = make_real_enforcer(root);
    const int number = ::socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(::listen(number, 8), 0);
    struct stat socket {};
    ASSERT_EQ(::fstat(number, &socket), 0);
    const auto cookie = host::ForeignFiles::open(::getpid())->socket(number)->cookie().value();
    std::array<int, 2> ready{};
    ASSERT_EQ(::pipe(ready.data()), 0);
    const Forked worker([&] {
        ::dup2(number, number + 50);
        ::close(number);
        ::shutdown(number + 50, SHUT_RD);
        std::ignore = ::write(ready[1], "", 1);
        while (true)
            ::pause();
    });
    char done = 0;
    ASSERT_EQ(::read(ready[0], &done, 1), 1);
    for (const int fd : {number, ready[0], ready[1]})
        ::close(fd);
    const ListenerCpu subject{cookie, worker.pid(), ::getpid(), number, 80, socket.st_ino};
    EXPECT_EQ(enforcer->apply({subject, {}, CpuSet{0}, "web", planner::Steering::accept}).outcome,
              Outcome::done);
    EXPECT_EQ(enforcer->present(subject).value(), Setting(CpuSet{0}));
}

/// A parent with children that have very many files open.
class Hoarders : public testing::Test {
  protected:
    static constexpr int each = 8000;
    void SetUp() override {
        std::array<int, 2> ready{};
        ASSERT_EQ(::pipe(ready.data()), 0);
        parent_ = std::make_unique<Forked>([&] {
            const rlimit limit{each + 100, each + 100};
            ::setrlimit(RLIMIT_NOFILE, &limit);
            const auto hoard = [&] {
                char is_done = 1;
                for (int i = 0; i < each; ++i)
                    if (::dup(ready[1]) < 0) is_done = 0;
                std::ignore = ::write(ready[1], &is_done, 1);
                while (true)
                    ::pause();
            };
            const Forked one(hoard), two(hoard), three(hoard), four(hoard);
            while (true)
                ::pause();
        });
        ::close(ready[1]);
        for (int i = 0; i < 4; ++i) {
            char is_done = 0;
            ASSERT_EQ(::read(ready[0], &is_done, 1), 1);
            ASSERT_EQ(is_done, 1);
        }
        ::close(ready[0]);
    }
    /// On a slow machine a walk ends early; the next, which comes after a rest, goes on from there.
    [[nodiscard]] std::optional<Setting> found(const ListenerCpu& subject) const {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        auto present = enforcer_->present(subject);
        while (!present && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            present = enforcer_->present(subject);
        }
        return present.value_or(std::nullopt);
    }
    host::Root root_ = *host::Root::open();
    std::unique_ptr<Enforcer> enforcer_ = make_real_enforcer(root_);
    std::unique_ptr<Forked> parent_;
};

TEST_F(Hoarders, AreNotSearchedForListenersThatHaveGone) {
    std::vector<ListenerCpu> subjects;
    for (int i = 0; i < 300; ++i) {
        const int number = ::socket(AF_INET, SOCK_STREAM, 0);
        ASSERT_EQ(::listen(number, 8), 0);
        struct stat socket {};
        ASSERT_EQ(::fstat(number, &socket), 0);
        const auto cookie = host::ForeignFiles::open(::getpid())->socket(number)->cookie().value();
        subjects.push_back({cookie, 4194305, parent_->pid(), number, 80, socket.st_ino});
    }
    EXPECT_EQ(found(subjects[0]), Setting()) << "this process has it";
    for (const auto& subject : subjects)
        ::close(subject.number);
    std::this_thread::sleep_for(std::chrono::milliseconds(500)); // longer than a list is used
    const auto before = host::thread_time_with_calls();
    int cut_short = 0; // searches, on a slow machine
    for (const auto& subject : subjects)
        if (const auto present = enforcer_->present(subject))
            EXPECT_FALSE(*present);
        else
            ++cut_short;
    EXPECT_LT(cut_short, 20) << "then the list is believed";
    EXPECT_LT(host::thread_time_with_calls() - before, std::chrono::seconds(2))
        << "searching takes ten times";
}

} // namespace
} // namespace affinityd::enforcer
