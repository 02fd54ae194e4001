// SPDX-License-Identifier: Apache-2.0
#include "host/self.hpp"

#include "base/text.hpp"
#include "host/file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <string_view>

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd::host {

std::string program_folder() {
    std::array<char, 4096> path{};
    const auto length = ::readlink("/proc/self/exe", path.data(), path.size());
    if (length <= 0) return {};
    const std::string text(path.data(), static_cast<std::size_t>(length));
    return text.substr(0, text.rfind('/') + 1);
}

namespace {

/// Drops the capabilities that a change of user leaves (SECBIT_NO_SETUID_FIXUP), and those that a user was
/// given. Without any, capset(2) is not called: units forbid it.
bool drop_capabilities() {
    __user_cap_header_struct own{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    if (::syscall(SYS_capget, &own, sets.data()) != 0) return false;
    const auto is_empty = [](const __user_cap_data_struct& half) {
        return (half.effective | half.permitted | half.inheritable) == 0;
    };
    if (std::ranges::all_of(sets, is_empty)) return true;
    sets = {};
    return ::syscall(SYS_capset, &own, sets.data()) == 0;
}

} // namespace

bool drop_privileges() {
    constexpr uid_t nobody = 65534; // the kernel's overflow user: owns nothing
    if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
                             ::setresuid(nobody, nobody, nobody) != 0))
        return false;
    if (!drop_capabilities()) return false;
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

bool can_drop_privileges() { return ::geteuid() != 0 || ::prctl(PR_CAPBSET_READ, CAP_SETUID, 0, 0, 0) == 1; }

bool sees_all_processes() {
    const auto has = [](unsigned right) { return ::prctl(PR_CAPBSET_READ, right, 0, 0, 0) == 1; };
    return ::geteuid() != 0 || (has(CAP_SYS_PTRACE) && has(CAP_DAC_READ_SEARCH));
}

bool is_container(const Root& root) {
    const auto environment = root.proc().text("1/environ").value_or("");
    const auto is_mark = [](std::string_view variable) { return variable.starts_with("container="); };
    return std::ranges::any_of(split(environment, '\0'), is_mark) ||
           root.proc().text("1/mountinfo").value_or("").find("/docker/containers/") != std::string::npos;
}

int allow_many_open_files(std::uint64_t most) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return errno;
    const auto wanted = std::min<rlim_t>(most, limit.rlim_max);
    if (limit.rlim_cur >= wanted) return 0;
    limit.rlim_cur = wanted;
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : errno;
}

std::uint64_t ticks_a_second() {
    static const auto ticks = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
    return ticks;
}

std::uint64_t ticks_since_boot() {
    constexpr std::uint64_t nanoseconds = 1'000'000'000;
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * ticks_a_second() +
           static_cast<std::uint64_t>(now.tv_nsec) * ticks_a_second() / nanoseconds;
}

const std::string& boot_id() {
    static const std::string id = [] {
        const auto text = read_file("/proc/sys/kernel/random/boot_id");
        return text && *text ? std::string(trim_text(**text)) : std::string();
    }();
    return id;
}

} // namespace affinityd::host
