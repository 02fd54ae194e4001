// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

namespace affinityctl {

/// --interval as a duration; 0 seconds: not given.
[[nodiscard]] inline std::optional<std::chrono::milliseconds> interval_of(double seconds) {
    if (seconds <= 0) return std::nullopt;
    return std::chrono::milliseconds(static_cast<long>(seconds * 1000));
}

} // namespace affinityctl
