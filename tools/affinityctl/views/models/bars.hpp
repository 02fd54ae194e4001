// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/models/work_view.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// The curve on a terminal, a bar for each size and model, all on one scale; the longest has `width` columns.
/// Throughput: '#' up to the low end of the interval and '+' through it. Latency: '#' up to the median and
/// '+' up to the 99th percentile. "" where no model has an interval.
[[nodiscard]] std::string bars(const WorkView& view, const std::vector<std::string>& labels, unsigned width);

} // namespace affinityctl
