// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"
#include "measure/run.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::measure {
namespace {

/// Waits for the exit as an event loop does: WNOWAIT first, then the report, then the reaping.
Run wait_for(Child& child) {
    siginfo_t info{};
    const auto pid = static_cast<id_t>(child.pid());
    EXPECT_EQ(::waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
    auto run = child.ended(info);
    EXPECT_EQ(::waitid(P_PID, pid, &info, WEXITED), 0);
    return run;
}

Run run_shell(const std::string& script) {
    auto child = Child::start({"/bin/sh", "-c", script});
    EXPECT_TRUE(child);
    return wait_for(*child);
}

bool no_child_is_left() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

TEST(Child, OutputAndGoodEndAreReported) {
    const auto run = run_shell("echo report");
    EXPECT_EQ(run.output, "report\n");
    EXPECT_EQ(run.outcome, Outcome::done);
    EXPECT_EQ(run.fault, "");
}

TEST(Child, ExitCodeAndSignalAreReported) {
    const auto failed = run_shell("echo partial; exit 3");
    EXPECT_EQ(failed.outcome, Outcome::failed);
    EXPECT_EQ(failed.output, "partial\n");
    EXPECT_EQ(failed.fault, "ended with exit code 3");
    const auto killed = run_shell("kill -9 $$");
    EXPECT_EQ(killed.outcome, Outcome::killed);
    EXPECT_EQ(killed.fault, "was killed by signal 9");
}

/// The daemon blocks signals before it does anything else, and an exec keeps that.
TEST(Child, NoSignalIsBlockedInTheProgramThatAParentWithBlockedSignalsStarts) {
    sigset_t all, before;
    sigfillset(&all);
    ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    const auto run = run_shell("exec grep SigBlk: /proc/self/status");
    ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
    EXPECT_EQ(run.output, "SigBlk:\t0000000000000000\n");
}

TEST(Child, ProgramThatCannotBeExecutedIsAnError) {
    const auto child = Child::start({"/nonexistent/affinity-ttcp"});
    ASSERT_FALSE(child);
    EXPECT_EQ(child.error().code, ENOENT);
    EXPECT_TRUE(no_child_is_left());
    EXPECT_FALSE(Child::start({}));
}

TEST(Child, TimeOutEndsTheWholeGroup) {
    auto child = Child::start({"/bin/sh", "-c", "sleep 600 & echo $!; wait"});
    ASSERT_TRUE(child);
    pid_t sleeper = 0;
    for (int i = 0; sleeper == 0 && i < 3000; ++i, ::usleep(10'000)) {
        char text[32] = {};
        if (::read(child->output(), text, sizeof text - 1) > 0)
            sleeper = static_cast<pid_t>(std::strtol(text, nullptr, 10));
    }
    ASSERT_GT(sleeper, 0);
    child->time_out();
    const auto run = wait_for(*child);
    EXPECT_EQ(run.outcome, Outcome::timed_out);
    EXPECT_EQ(run.fault, "took too long and was ended");
    bool gone = false;
    for (int i = 0; !gone && i < 3000; ++i, ::usleep(10'000)) // its new parent reaps it
        gone = ::kill(sleeper, 0) != 0;
    EXPECT_TRUE(gone);
}

TEST(Child, DestroyedAtOnceIsKilledAndReaped) {
    for (int i = 0; i < 20; ++i) { // the kill must not miss a child that has no group of its own yet
        const auto child = Child::start({"/bin/sleep", "600"});
        ASSERT_TRUE(child);
    }
    EXPECT_TRUE(no_child_is_left());
}

TEST(Child, OutputIsBounded) {
    auto child = Child::start({"/bin/sh", "-c", "cat /dev/zero"});
    ASSERT_TRUE(child);
    siginfo_t info{};
    const auto pid = static_cast<id_t>(child->pid());
    while (::waitid(P_PID, pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid == 0) {
        if (!child->drain()) child->close_output();
        ::usleep(1000);
    }
    const auto run = child->ended(info);
    ::waitid(P_PID, pid, &info, WEXITED);
    EXPECT_GE(run.output.size(), 256U << 10);
    EXPECT_LE(run.output.size(), (256U << 10) + 4096);
}

/// A program costs its caller no copy of the caller's memory: fork(2) takes several times as long
/// with 128 MiB.
TEST(Child, CostsNoCopyOfTheCallersPageTables) {
    constexpr std::size_t much = std::size_t{128} << 20;
    void* const memory = ::mmap(nullptr, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ::madvise(memory, much, MADV_NOHUGEPAGE);
    std::memset(memory, 1, much);
    auto best = std::chrono::nanoseconds::max(), best_fork = best;
    for (int i = 0; i < 3; ++i) {
        auto begin = thread_time();
        const auto child = Child::start({"/bin/true"});
        best = std::min(best, thread_time() - begin);
        ASSERT_TRUE(child);
        begin = thread_time();
        const pid_t copy = ::fork();
        if (copy == 0) ::_exit(0);
        best_fork = std::min(best_fork, thread_time() - begin);
        ::waitpid(copy, nullptr, 0);
    }
    ::munmap(memory, much);
    EXPECT_LT(best, best_fork / 2);
}

} // namespace
} // namespace affinityd::measure
