// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/policy.hpp"
#include "policy/reader.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// The document of `policies --json`: what was read, and what the daemon's `status` (or null) adds to it.
[[nodiscard]] nlohmann::json policies_json(const affinityd::policy::PolicySet& set,
                                           const nlohmann::json& status);

/// That document for a person.
[[nodiscard]] std::string policies_text(const nlohmann::json& document, bool color);

} // namespace affinityctl
