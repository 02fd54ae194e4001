// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/page.hpp"
#include "experiments/latency/matrix.hpp"
#include "experiments/latency/reading.hpp"
#include "topology/latencies.hpp"
#include "topology/topology.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
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

/// What is shown of latencies, measured here or read from a table. Refers to what its maker owns.
struct LatencyView {
    const affinityd::topology::Latencies& latencies;
    const affinityd::experiments::LatencyReading& reading;
    const affinityd::experiments::LatencyMatrix* matrix = nullptr; ///< null: of a foreign table
    const affinityd::topology::Topology* topology = nullptr;       ///< null: not known
    std::string source;                 ///< the model of the CPUs, or the table's name; foreign text
    double seconds = 0;                 ///< how long it took; 0: of a table
    std::vector<std::string> remarks{}; ///< what people should know of how it was measured
};

/// "Latency between 24 CPUs: ns for one way"
[[nodiscard]] std::string headline_of(const LatencyView& view);
/// How it was measured, in one line.
[[nodiscard]] std::string method_of(const LatencyView& view);
/// "CPUs 0-7,16-23", "8 groups: 0-1, 2-3, 4-5 and 5 more": for one cell.
[[nodiscard]] std::string groups_of(const affinityd::topology::LatencyLevel& level, std::size_t most);

/// Tables, heat map, findings and what they mean, for people.
[[nodiscard]] std::string latency_text(const LatencyView& view, const Page& page);

/// The whole matrix as an SVG document, CPU by CPU in the order of the groups, with a scale, the table of
/// distances, the findings and what they mean.
[[nodiscard]] std::string latency_svg(const LatencyView& view);

/// The document of affinityctl-json(5) for `measure latency --json`: the figures with levels, findings and
/// meaning.
[[nodiscard]] nlohmann::json latency_json(const LatencyView& view);

/// The same as the history keeps it, which takes `most` bytes: of a machine so large that all is too long,
/// without intervals and medians, by which nothing is placed.
[[nodiscard]] std::string latency_detail(const LatencyView& view, std::size_t most);

} // namespace affinityctl
