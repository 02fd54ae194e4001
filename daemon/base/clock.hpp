// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace affinityd {

/// CLOCK_MONOTONIC in seconds, clock_gettime(2); libstdc++'s steady clock reads that clock.
[[nodiscard]] inline double monotonic_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace affinityd
