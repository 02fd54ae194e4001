// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/measurements.hpp"
#include "accounting/passive_cost.hpp"
#include "status/status.hpp"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace affinityd::status {

// The forms that affinityctl-json(5) documents.

/// Names of processes may be any bytes; what is not UTF-8 becomes U+FFFD.
[[nodiscard]] std::string dump(const nlohmann::json& value);

[[nodiscard]] nlohmann::json to_json(const planner::Subject& subject);
[[nodiscard]] nlohmann::json to_json(const planner::Action& action);
[[nodiscard]] nlohmann::json to_json(const planner::Problem& problem);
[[nodiscard]] nlohmann::json to_json(const ProblemStatus& problem);
[[nodiscard]] nlohmann::json to_json(const ThreadStatus& thread);
[[nodiscard]] nlohmann::json to_json(const ProcessStatus& process);
[[nodiscard]] nlohmann::json to_json(const LocalStatus& local);
[[nodiscard]] nlohmann::json to_json(const PolicyStatus& policy);
[[nodiscard]] nlohmann::json to_json(const NotSteered& listeners);
[[nodiscard]] nlohmann::json to_json(const TasksAtArrivals& tasks);
[[nodiscard]] nlohmann::json to_json(const QueueStatus& queue);
[[nodiscard]] nlohmann::json to_json(const planner::Crowding& crowding); ///< loads in CPUs
[[nodiscard]] nlohmann::json to_json(const Overview& overview);
/// Without its threads.
[[nodiscard]] nlohmann::json to_json(const ProcessExplanation& process);
[[nodiscard]] nlohmann::json to_json(const ThreadExplanation& thread, const ProcessExplanation& process);

// Reports of accounting as texts of this kind.

[[nodiscard]] std::string to_text(const accounting::CostReport& report);
/// "null" before the first run.
[[nodiscard]] std::string to_text(const std::optional<accounting::MeasurementReport>& report);
[[nodiscard]] std::string to_text(const accounting::HistoryReport& report);
[[nodiscard]] std::string to_text(const LocalStatus& local);
/// "94 % same core, 12 % by chance (420 samples)"
[[nodiscard]] std::string to_string(const LocalStatus& local);

} // namespace affinityd::status
