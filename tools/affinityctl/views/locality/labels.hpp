// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/report.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// "52%", "-" where there is nothing to be a part of.
[[nodiscard]] std::string percent_of(double share, bool is_any);
/// "10.0 s: 12,345 reads by 2 processes (policy nginx)"
[[nodiscard]] std::string headline_of(const LocalityReport& report);
/// One sentence that says what to do.
[[nodiscard]] std::string closing_of(const LocalityReport& report);
/// Remarks on how it was counted: lost, left out, without UDP.
[[nodiscard]] std::vector<std::string> remarks_of(const LocalityReport& report);

} // namespace affinityctl
