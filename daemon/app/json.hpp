// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/executor.hpp"
#include "app/task_table.hpp"
#include "app/world.hpp"

#include <nlohmann/json.hpp>

namespace affinityd::app {

/// Any bytes as a JSON string: names of processes need not be UTF-8; what is not becomes U+FFFD when it is
/// dumped.
[[nodiscard]] std::string dump(const nlohmann::json& value);

[[nodiscard]] nlohmann::json to_json(const planner::Action& action);
[[nodiscard]] nlohmann::json to_json(const planner::Problem& problem);
[[nodiscard]] nlohmann::json to_json(const KnownThread& thread);
[[nodiscard]] nlohmann::json to_json(const planner::QueueTarget& target, const state::Journal& journal);

} // namespace affinityd::app
