// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace affinityctl {

/// The part of the daemon's GetStatus that concerns a policy (by name), an interface (by name), or a process
/// (by its PID or one of its TIDs); its policies' threads are counted anew, and `subject` names it. No value:
/// the daemon knows no such thing.
[[nodiscard]] std::optional<nlohmann::json> selected(const nlohmann::json& status,
                                                     const std::string& subject);

/// The same for the processes of a unit. No value: none of them is under policy.
[[nodiscard]] std::optional<nlohmann::json> selected(const nlohmann::json& status, const std::string& unit,
                                                     const std::vector<int>& pids);

/// Names that could have been meant, for a hint: policies and interfaces.
[[nodiscard]] std::vector<std::string> names_in(const nlohmann::json& status);

} // namespace affinityctl
