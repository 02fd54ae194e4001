// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/measurements.hpp"
#include "accounting/passive_cost.hpp"
#include "status/status.hpp"

#include <optional>
#include <string>

namespace affinityd::status {

// Reports of accounting as JSON texts, as affinityctl-json(5) documents them.

[[nodiscard]] std::string to_text(const accounting::CostReport& report);
/// "null" before the first run.
[[nodiscard]] std::string to_text(const std::optional<accounting::MeasurementReport>& report);
[[nodiscard]] std::string to_text(const accounting::HistoryReport& report);
[[nodiscard]] std::string to_text(const LocalStatus& local);
/// "94 % same core, 12 % by chance (420 samples)"
[[nodiscard]] std::string to_string(const LocalStatus& local);

} // namespace affinityd::status
