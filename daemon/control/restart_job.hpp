// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace affinityd::control {

/// True if this process is a service of systemd's that is being stopped to be started again (`systemctl
/// restart`). Waits for the answer, a second at most; false where there is none.
[[nodiscard]] bool is_being_restarted();

} // namespace affinityd::control
