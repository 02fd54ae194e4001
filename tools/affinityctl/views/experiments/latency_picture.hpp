// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/experiments/latency_view.hpp"

#include <string>

namespace affinityctl {

/// The whole matrix as an SVG document, CPU by CPU in the order of the groups, with a scale, the table of
/// distances, the findings and what they mean.
[[nodiscard]] std::string latency_svg(const LatencyView& view);

} // namespace affinityctl
