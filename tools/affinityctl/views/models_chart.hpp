// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/report.hpp"
#include "affinity-ttcp/models/summary.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// "none", "irq", ...; a model that is listed twice (an A/A run) gets a number: "none (2)".
[[nodiscard]] std::vector<std::string> labels_of(const std::vector<affinityd::ttcp::ModelSummary>& summaries);

/// Throughput as bars of '#' up to the low end of the interval and '+' through it, then the figures. The
/// longest bar has `width` columns. "" where no model has an interval.
[[nodiscard]] std::string bars(const std::vector<affinityd::ttcp::ModelSummary>& summaries, unsigned width);

/// The same as an SVG document, with the verdicts and the setup. Bars begin at zero.
[[nodiscard]] std::string models_svg(const affinityd::ttcp::ModelsReport& report,
                                     const std::vector<affinityd::ttcp::ModelSummary>& summaries);

} // namespace affinityctl
