// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/page.hpp"
#include "topology/latencies.hpp"
#include "topology/latency_levels.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityctl {

/// Latencies as a grid. CPUs that are near each other stand side by side: in the order of the groups that
/// were found, and of their numbers.
struct LatencyMap {
    std::vector<unsigned> names;                          ///< of rows and columns: a CPU, or a group's first
    std::vector<std::vector<std::optional<double>>> ns{}; ///< no value: not known, or the same CPU
    double least = 0, most = 0;                           ///< of all cells
    std::string scale;                                    ///< "", or what a row stands for
};

/// CPU by CPU where that makes at most `most` rows, else group by group of the finest level that does, with
/// medians, else some of the CPUs. Pairs that were not measured have what their groups have. `most` > 0.
[[nodiscard]] LatencyMap latency_map(const affinityd::topology::Latencies& latencies,
                                     const std::vector<affinityd::topology::LatencyLevel>& levels,
                                     std::size_t most);

/// The shade of a latency: 1 for the nearest, little for the farthest, by ratio; a map in which all are alike
/// has one shade.
[[nodiscard]] double shade_of_ns(const LatencyMap& map, const std::optional<double>& ns);

/// As lines for a terminal: figures while they fit in the page, else shades. No line is wider than the page;
/// width 0 counts as 80 columns. "" with nothing measured.
[[nodiscard]] std::string latency_map_text(const affinityd::topology::Latencies& latencies,
                                           const std::vector<affinityd::topology::LatencyLevel>& levels,
                                           const Page& page);

} // namespace affinityctl
