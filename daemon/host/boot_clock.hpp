// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace affinityd::host {

[[nodiscard]] std::uint64_t ticks_a_second();
/// Clock ticks since boot, as the start times of tasks, proc_pid_stat(5).
[[nodiscard]] std::uint64_t ticks_since_boot();

} // namespace affinityd::host
