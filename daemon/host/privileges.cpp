// SPDX-License-Identifier: Apache-2.0
#include "host/privileges.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace affinityd::host {

bool drop_privileges() {
    constexpr uid_t nobody = 65534; // the kernel's overflow user: owns nothing
    if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
                             ::setresuid(nobody, nobody, nobody) != 0))
        return false;
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

bool can_drop_privileges() { return ::geteuid() != 0 || ::prctl(PR_CAPBSET_READ, CAP_SETUID, 0, 0, 0) == 1; }

} // namespace affinityd::host
