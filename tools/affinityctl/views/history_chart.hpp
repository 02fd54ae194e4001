// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/history_points.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// Rate over time, from zero, with the median and the expected interval of `trend` (an object of the daemon's
/// answer).
[[nodiscard]] std::string history_svg(const std::vector<HistoryPoint>& points, const std::string& path,
                                      const nlohmann::json& trend);

} // namespace affinityctl
