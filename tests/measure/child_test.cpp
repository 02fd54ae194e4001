// SPDX-License-Identifier: Apache-2.0
#include "host/scheduler.hpp"
#include "measure/child.hpp"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <iterator>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

TEST(Child, ProgramThatCannotBeExecutedIsAnOutcome) {
    auto child = Child::start({"/nonexistent/affinity-ttcp"});
    ASSERT_TRUE(child);
    EXPECT_EQ(wait_for(*child).fault, "ended with exit code 127");
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

TEST(Child, PrivilegesAndPriorityAreLowered) {
    const auto status = run_shell("cat /proc/self/status; nice").output;
    EXPECT_NE(status.find("NoNewPrivs:\t1"), std::string::npos) << status;
    EXPECT_TRUE(status.ends_with("10\n")) << status;
    if (::geteuid() != 0) return;
    EXPECT_NE(status.find("Uid:\t65534\t65534\t65534\t65534"), std::string::npos) << status;
    EXPECT_NE(status.find("Gid:\t65534\t65534\t65534\t65534"), std::string::npos) << status;
    EXPECT_NE(status.find("CapEff:\t0000000000000000"), std::string::npos) << status;
}

TEST(Child, RunsOnAllCpusThoughItsParentIsPinned) {
    const auto before = host::get_affinity(0).value();
    ASSERT_EQ(host::set_affinity(0, {before.first()}), 0);
    const auto status = run_shell("cat /proc/self/status").output;
    ASSERT_EQ(host::set_affinity(0, before), 0);
    const auto at = status.find("Cpus_allowed_list:\t");
    ASSERT_NE(at, std::string::npos);
    const auto allowed = status.substr(at + 19, status.find('\n', at) - at - 19);
    EXPECT_TRUE(CpuSet::parse_list(allowed)->contains(before)) << allowed;
}

TEST(Everywhere, HoldsCpusAboveTheCLibrarysLimit) {
    const auto all = everywhere();
    EXPECT_TRUE(all.contains(0));
    EXPECT_TRUE(all.contains(1024));
    EXPECT_TRUE(all.contains(8191)); // the most that Linux supports on x86 (NR_CPUS)
    EXPECT_EQ(all.count(), CpuSet::max_cpu + 1);
}

/// From here on a process dies if it hands the kernel a mask that ends at CPU 1,023.
bool forbid_short_masks() {
    constexpr auto length = offsetof(seccomp_data, args) + sizeof(__u64); // of sched_setaffinity(2), low half
    sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 3),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, length),
                          BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, sizeof(cpu_set_t), 1, 0),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{std::size(code), code};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Few kernels under test have more than 1,024 CPUs, so this looks at the length of the mask.
TEST(Child, MaskReachesBeyondTheCLibrarysLimit) {
    const pid_t filtered = ::fork();
    if (filtered == 0) {
        if (!forbid_short_masks()) ::_exit(2);
        ::_exit(run_shell("exit 0").outcome == Outcome::done ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(filtered, &status, 0), filtered);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
} // namespace affinityd::measure
