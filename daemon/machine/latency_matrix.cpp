// SPDX-License-Identifier: Apache-2.0
#include "machine/latency_matrix.hpp"

#include "topology/topology.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::machine {

namespace {

using topology::Latencies;
using topology::LatencyLevel;

/// True if a group of the level has both.
bool has_in_one_group(const LatencyLevel& level, unsigned a, unsigned b) {
    return std::ranges::any_of(level.groups,
                               [&](const CpuSet& group) { return group.contains(a) && group.contains(b); });
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

double between_groups(const Latencies& latencies, const std::vector<LatencyLevel>& levels) {
    std::vector<double> values;
    const auto& cpus = latencies.cpus();
    for (std::size_t a = 0; a < cpus.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) {
            const auto ns = latencies.at(a, b);
            if (ns && (levels.empty() || !has_in_one_group(levels.back(), cpus[a], cpus[b])))
                values.push_back(*ns);
        }
    return median(std::move(values));
}

} // namespace

LatencyMatrix::LatencyMatrix(Latencies measured)
    : measured_(std::move(measured)), levels_(topology::latency_levels(measured_)),
      completed_(topology::completed(measured_, levels_)), apart_(between_groups(measured_, levels_)) {}

double LatencyMatrix::usual_ns(unsigned a, unsigned b) const {
    for (const auto& level : levels_)
        if (has_in_one_group(level, a, b)) return level.ns;
    return apart_;
}

KnownLatencies latencies_here(Latencies kept, const topology::Topology& topology, std::string_view model) {
    if (kept.measured() == 0) return {};
    if (!kept.is_of(topology, model))
        return {nullptr, "the latencies that are kept were measured on another machine", 0};
    return {std::make_shared<const LatencyMatrix>(std::move(kept)), "", 0};
}

} // namespace affinityd::machine
