// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// One run over one path, from the daemon's history.
struct HistoryPoint {
    long long time = 0; ///< seconds since 1970
    bool done = false;  ///< false: `rate` means nothing
    double rate = 0;    ///< bits per second
};

/// The runs over `path`. A run that did not begin has no path; it counts for all of them.
[[nodiscard]] std::vector<HistoryPoint> points_of(const nlohmann::json& records, const std::string& path);

/// The lowest and the highest rate of the runs that were done; zeros without any.
struct RateRange {
    double low = 0, high = 0;
};
[[nodiscard]] RateRange rates_of(const std::vector<HistoryPoint>& points);

/// A member as a number; 0 where it is not one.
[[nodiscard]] double number_of(const nlohmann::json& record, const char* key);

/// "2026-11-21 08:15:00" in the local time zone.
[[nodiscard]] std::string local_time(long long seconds);

} // namespace affinityctl
