// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// One run over one way, as the daemon's history has it.
struct HistoryPoint {
    long long time = 0; ///< seconds since 1970
    bool done = false;  ///< false: `rate` means nothing
    double rate = 0;    ///< bits per second
};

/// One character for each point: the rate from the lowest to the highest of them in eight steps, 'x' for a
/// run that failed or was skipped. Without `unicode` the steps are digits.
[[nodiscard]] std::string sparkline(const std::vector<HistoryPoint>& points, bool unicode);

/// Rate over time, from zero, with the median and the expected interval of `trend` (an object of the daemon's
/// answer) as lines.
[[nodiscard]] std::string history_svg(const std::vector<HistoryPoint>& points, const std::string& path,
                                      const nlohmann::json& trend);

/// "2026-11-21 08:15" in the local time zone.
[[nodiscard]] std::string local_time(long long seconds);

} // namespace affinityctl
