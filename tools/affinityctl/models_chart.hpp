// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/models.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// "none", "irq", ...; a model that is there twice (an A/A run) gets a number: "none (2)".
[[nodiscard]] std::vector<std::string>
labels_of(const std::vector<affinityd::measure::ModelSummary>& summaries);

/// Throughput as bars of '#' up to the low end of the interval and '+' through it, with the figures behind.
/// `width` columns for the longest. "" where no model has an interval.
[[nodiscard]] std::string bars(const std::vector<affinityd::measure::ModelSummary>& summaries,
                               unsigned width);

/// The same as an SVG document with the verdicts and what was measured on what. Bars begin at zero.
[[nodiscard]] std::string models_svg(const affinityd::measure::ModelsReport& report,
                                     const std::vector<affinityd::measure::ModelSummary>& summaries);

} // namespace affinityctl
