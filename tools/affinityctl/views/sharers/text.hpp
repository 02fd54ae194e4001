// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/report.hpp"
#include "affinityctl/views/page.hpp"

#include <string>

namespace affinityctl {

/// What `sharers` prints: the pairs, the groups, what people should know, and the policy that follows.
[[nodiscard]] std::string sharers_text(const SharersReport& report, const Page& page);

} // namespace affinityctl
