// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/experiments/cache_view.hpp"

#include <string>

namespace affinityctl {

/// A curve for each place, one panel for each quantum, as an SVG document: how much longer a quantum takes,
/// by working set. Curves are told apart by marks and labels, not only by colour.
[[nodiscard]] std::string cache_svg(const CacheView& view, const MeasuredOn& on);

} // namespace affinityctl
