// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/report.hpp"

#include <nlohmann/json.hpp>

namespace affinityctl {

/// The document of `sharers --json`, documented in affinityctl(1).
[[nodiscard]] nlohmann::json sharers_json(const SharersReport& report);

} // namespace affinityctl
