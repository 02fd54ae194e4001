// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/match_check.hpp"
#include "policy/diagnostic.hpp"
#include "policy/reader.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityctl {

using Findings = std::vector<affinityd::policy::Diagnostic>;

[[nodiscard]] std::size_t count_errors(const Findings& findings);

/// What the policies match now; no value: processes were not read.
using MatchCounts = std::optional<affinityd::planner::Matches>;

/// What `check --json` prints.
[[nodiscard]] std::string check_json(const affinityd::policy::ReadResult& result, const Findings& findings,
                                     const MatchCounts& matches);

/// The same for a person: what overrides what, each finding with its source line, what is matched now, then
/// how many findings there are.
[[nodiscard]] std::string check_text(const affinityd::policy::ReadResult& result, const Findings& findings,
                                     const MatchCounts& matches, bool color);

} // namespace affinityctl
