// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/report.hpp"

#include <nlohmann/json.hpp>

namespace affinityctl {

/// The document of `locality --json`, documented in affinityctl(1): figures, and all raw counts.
[[nodiscard]] nlohmann::json locality_json(const LocalityReport& report);

} // namespace affinityctl
