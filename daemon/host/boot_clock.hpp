// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace affinityd::host {

/// Clock ticks a second, in which the kernel counts for users: sysconf(3), _SC_CLK_TCK. At least 1.
[[nodiscard]] std::uint64_t ticks_a_second();
/// Clock ticks since boot, as the start times of tasks, proc_pid_stat(5).
[[nodiscard]] std::uint64_t ticks_since_boot();
/// A text that the kernel makes anew with each boot: boot_id of random(4). "" if it cannot be read.
[[nodiscard]] const std::string& boot_id();

} // namespace affinityd::host
