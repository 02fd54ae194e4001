// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/models/work_view.hpp"
#include "affinityctl/views/svg.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// Pixels that draw_bars takes downwards.
[[nodiscard]] double height_of_bars(const WorkView& view);
/// One size: a bar for each model with the whisker of its interval, throughput and cost in its parts, or both
/// latencies and the CPU time of a request. Draws below `y`.
void draw_bars(Svg& svg, double y, const WorkView& view, const std::vector<std::string>& labels);

} // namespace affinityctl
