// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/history_points.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// Which part of the daemon's GetHistory is shown.
struct HistoryRequest {
    std::string path;       ///< of the sparklines; "": all
    std::size_t count = 20; ///< rows of the table, the latest
    bool unicode = false;   ///< the terminal shows UTF-8
};

[[nodiscard]] std::string history_text(const nlohmann::json& answer, const HistoryRequest& request,
                                       bool color);

/// One character for each point: the rate from the lowest to the highest in eight steps, 'x' for a run that
/// failed or was skipped. Without `unicode` the steps are digits.
[[nodiscard]] std::string sparkline(const std::vector<HistoryPoint>& points, bool unicode);

} // namespace affinityctl
