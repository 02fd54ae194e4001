// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/experiments/latency_view.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// What affinityctl(1) documents for `measure latency --json`: the figures with levels, findings and meaning.
[[nodiscard]] nlohmann::json latency_json(const LatencyView& view);

/// The same as the history keeps it, which takes `most` bytes: of a machine so large that all is too long,
/// without intervals and medians, by which nothing is placed.
[[nodiscard]] std::string latency_detail(const LatencyView& view, std::size_t most);

} // namespace affinityctl
