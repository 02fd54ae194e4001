// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// The daemon's GetPlan, or the plan for a recorded machine, for a person.
[[nodiscard]] std::string plan_text(const nlohmann::json& plan, bool color);
/// How well tasks are placed, and what cannot be carried out: a line each.
[[nodiscard]] std::string plan_remarks(const nlohmann::json& plan);

} // namespace affinityctl
