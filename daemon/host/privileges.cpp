// SPDX-License-Identifier: Apache-2.0
#include "host/privileges.hpp"

#include <algorithm>
#include <array>

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd::host {

namespace {

/// Those that a change of user leaves (SECBIT_NO_SETUID_FIXUP), and those of a user who was given some. Not
/// asked for where there are none: units forbid that call.
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

} // namespace affinityd::host
