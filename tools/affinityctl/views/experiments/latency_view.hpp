// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/latency/matrix.hpp"
#include "experiments/latency/reading.hpp"
#include "topology/topology.hpp"

#include <string>
#include <vector>

namespace affinityctl {

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

} // namespace affinityctl
