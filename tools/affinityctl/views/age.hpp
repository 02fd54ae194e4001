// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace affinityctl {

using WallTime = std::chrono::system_clock::time_point;

/// A time as the daemon writes it: "2026-11-23T01:46:33Z", or seconds since 1970; no value: it is none.
[[nodiscard]] std::optional<WallTime> time_in(const nlohmann::json& value);

/// How long ago that was: "12 s", "3 min", "2 h", "5 days". A time to come, as a clock was set, is "0 s".
[[nodiscard]] std::string age_of(WallTime then, WallTime now);

} // namespace affinityctl
