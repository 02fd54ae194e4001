// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/experiments/latency_view.hpp"
#include "affinityctl/views/page.hpp"

#include <string>

namespace affinityctl {

/// Tables, heat map, findings and what they mean, for people.
[[nodiscard]] std::string latency_text(const LatencyView& view, const Page& page);

} // namespace affinityctl
