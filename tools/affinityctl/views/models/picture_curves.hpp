// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/models/work_view.hpp"
#include "affinityctl/views/svg.hpp"

namespace affinityctl {

/// Pixels that draw_curves takes downwards.
[[nodiscard]] double height_of_curves();
/// Several sizes: panels side by side with a curve for each model. Throughput, what it gained and what it
/// cost by size; or both latencies and the CPU time of a request. Draws below `y`.
void draw_curves(Svg& svg, double y, const WorkView& view);

} // namespace affinityctl
