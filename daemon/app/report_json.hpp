// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/cost_report.hpp"
#include "accounting/measurement_report.hpp"

#include <nlohmann/json.hpp>
#include <optional>

namespace affinityd::app {

[[nodiscard]] nlohmann::json to_json(const accounting::CostReport& report);
/// {"last": {...}, "trend": {...}, "runs": N, "summary": "..."}, or null before the first run.
[[nodiscard]] nlohmann::json to_json(const std::optional<accounting::MeasurementReport>& report);
/// {"records": [...], "trends": [...], "kept": true}, and "fault" if there was one.
[[nodiscard]] nlohmann::json to_json(const accounting::HistoryReport& report);

} // namespace affinityd::app
