// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace affinityd::host {

/// Root becomes the user nobody (65534) without groups; anybody gives up all capabilities (capabilities(7)),
/// and the way to new privileges (PR_SET_NO_NEW_PRIVS, prctl(2)). False: this process still is what it was,
/// at least in part, and must not go on.
[[nodiscard]] bool drop_privileges();
/// False where this process is root without the capability to become another user.
[[nodiscard]] bool can_drop_privileges();

} // namespace affinityd::host
