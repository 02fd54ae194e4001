// SPDX-License-Identifier: Apache-2.0
#include "host/scheduler.hpp"
#include "measure/program.hpp"

#include <array>
#include <csignal>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::measure {
namespace {

/// The exit code of a child that does `work`; 255: none.
int in_child(const std::function<int()>& work) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(work());
    int status = 0;
    return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/// The output of a shell that a child becomes after it has lowered itself.
std::string of_lowered(const char* script) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    const pid_t parent = ::getpid();
    const int code = in_child([&] {
        ::dup2(pipe[1], STDOUT_FILENO);
        if (lower_self(parent)) ::execl("/bin/sh", "sh", "-c", script, nullptr);
        return 1;
    });
    EXPECT_EQ(code, 0);
    ::close(pipe[1]);
    std::string text;
    std::array<char, 4096> piece{};
    for (ssize_t got = 0; (got = ::read(pipe[0], piece.data(), piece.size())) > 0;)
        text.append(piece.data(), static_cast<std::size_t>(got));
    ::close(pipe[0]);
    return text;
}

TEST(LowerSelf, PrivilegesAndPriorityAreLowered) {
    const auto status = of_lowered("cat /proc/self/status; nice");
    EXPECT_NE(status.find("NoNewPrivs:\t1"), std::string::npos) << status;
    EXPECT_TRUE(status.ends_with("10\n")) << status;
    if (::geteuid() != 0) return;
    EXPECT_NE(status.find("Uid:\t65534\t65534\t65534\t65534"), std::string::npos) << status;
    EXPECT_NE(status.find("Gid:\t65534\t65534\t65534\t65534"), std::string::npos) << status;
    EXPECT_NE(status.find("CapEff:\t0000000000000000"), std::string::npos) << status;
}

/// With this bit (capabilities(7)) a change of user leaves all capabilities.
TEST(LowerSelf, NoCapabilityIsLeftWhereAChangeOfUserWouldLeaveThem) {
    const pid_t parent = ::getpid();
    EXPECT_EQ(in_child([parent] {
                  const bool is_set = ::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0;
                  if (is_set != (::geteuid() == 0) || !lower_self(parent)) return 1;
                  __user_cap_header_struct own{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
                  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> left{};
                  if (::syscall(SYS_capget, &own, left.data()) != 0) return 1;
                  for (const auto& half : left)
                      if ((half.effective | half.permitted | half.inheritable) != 0) return 2;
                  return 0;
              }),
              0);
}

TEST(LowerSelf, RunsOnAllCpusThoughItsParentIsPinned) {
    const auto before = host::get_affinity(0).value();
    ASSERT_EQ(host::set_affinity(0, {before.first()}), 0);
    const auto status = of_lowered("cat /proc/self/status");
    ASSERT_EQ(host::set_affinity(0, before), 0);
    const auto at = status.find("Cpus_allowed_list:\t");
    ASSERT_NE(at, std::string::npos);
    const auto allowed = status.substr(at + 19, status.find('\n', at) - at - 19);
    EXPECT_TRUE(CpuSet::parse_list(allowed)->contains(before)) << allowed;
}

TEST(LowerSelf, DiesWithItsParent) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const int code = in_child([&] {
        const pid_t parent = ::getpid();
        if (::fork() == 0) {
            if (!lower_self(parent) || ::write(pipe[1], "y", 1) != 1) return 1;
            ::sleep(600);
            return 1;
        }
        char ready = 0;
        return ::read(pipe[0], &ready, 1) == 1 && ready == 'y' ? 0 : 1;
    });
    EXPECT_EQ(code, 0);
    ::close(pipe[1]);
    pollfd end{pipe[0], 0, 0};
    EXPECT_EQ(::poll(&end, 1, 60'000), 1) << "it still has the pipe open";
    EXPECT_NE(end.revents & POLLHUP, 0);
    ::close(pipe[0]);
}

TEST(LowerSelf, DoesNotGoOnWithoutItsParent) {
    const pid_t parent = ::getpid();
    EXPECT_EQ(in_child([] { return lower_self(1'000'000'000) ? 1 : 0; }), 0);
    EXPECT_EQ(in_child([parent] { return lower_self(parent) ? 0 : 1; }), 0);
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
TEST(LowerSelf, MaskReachesBeyondTheCLibrarysLimit) {
    const pid_t parent = ::getpid();
    EXPECT_EQ(in_child([parent] {
                  if (!forbid_short_masks()) return 2;
                  return lower_self(parent) ? 0 : 1;
              }),
              0);
}

} // namespace
} // namespace affinityd::measure
