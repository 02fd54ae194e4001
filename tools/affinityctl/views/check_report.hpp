// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/diagnostic.hpp"
#include "policy/reader.hpp"

#include <string>
#include <vector>

namespace affinityctl {

using Findings = std::vector<affinityd::policy::Diagnostic>;

[[nodiscard]] std::size_t count_errors(const Findings& findings);

/// What `check --json` prints.
[[nodiscard]] std::string check_json(const affinityd::policy::ReadResult& result, const Findings& findings);

/// The same for a person: what overrides what, each finding with its source line, then how many there are.
[[nodiscard]] std::string check_text(const affinityd::policy::ReadResult& result, const Findings& findings,
                                     bool color);

} // namespace affinityctl
