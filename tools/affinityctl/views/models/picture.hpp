// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/models/work_view.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// The experiment as an SVG document: for each kind of work curves by size, or bars where it has one size
/// only; then the setup and what the figures are. Throughput, latency and bars of cost begin at zero.
[[nodiscard]] std::string models_svg(const affinityd::ttcp::ModelsReport& report,
                                     const std::vector<WorkView>& views);

} // namespace affinityctl
