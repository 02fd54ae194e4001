// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/report.hpp"

#include <string>

namespace affinityctl {

/// A matrix of who wakes whom as an SVG document: rows wake columns, groups side by side, the darker the more
/// often on a logarithmic scale. Of many threads, those that share most.
[[nodiscard]] std::string sharers_svg(const SharersReport& report);

} // namespace affinityctl
