// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/experiments/latency_view.hpp"

#include <nlohmann/json.hpp>

namespace affinityctl {

/// What affinityctl(1) documents for `measure latency --json`, and what the history keeps: the figures with
/// levels, findings and meaning.
[[nodiscard]] nlohmann::json latency_json(const LatencyView& view);

} // namespace affinityctl
