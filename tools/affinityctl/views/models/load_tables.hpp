// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/models/work_view.hpp"
#include "affinityctl/views/page.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// A row for each size and model. What was moved, against the first model: throughput and cost, or, with
/// Work::answer, requests and latencies.
[[nodiscard]] std::string gain_table(const WorkView& view, const std::vector<std::string>& labels,
                                     const Page& page);
/// The cost in its parts.
[[nodiscard]] std::string cost_table(const WorkView& view, const std::vector<std::string>& labels,
                                     const Page& page);
/// What happened in a second.
[[nodiscard]] std::string rate_table(const WorkView& view, const std::vector<std::string>& labels,
                                     const Page& page);

} // namespace affinityctl
