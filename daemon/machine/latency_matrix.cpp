// SPDX-License-Identifier: Apache-2.0
#include "machine/latency_matrix.hpp"

#include "topology/topology.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::machine {

namespace {

using topology::Latencies;
using topology::LatencyLevel;

std::vector<std::vector<unsigned>> groups_by_cpu(const Latencies& latencies,
                                                 const std::vector<LatencyLevel>& levels) {
    const std::size_t count = latencies.cpus().empty() ? 0 : latencies.cpus().back() + std::size_t{1};
    std::vector<std::vector<unsigned>> groups(levels.size(), std::vector<unsigned>(count));
    for (std::size_t level = 0; level < levels.size(); ++level)
        for (unsigned group = 0; group < levels[level].groups.size(); ++group)
            for (const unsigned cpu : levels[level].groups[group])
                groups[level][cpu] = group + 1;
    return groups;
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

} // namespace

LatencyMatrix::LatencyMatrix(Latencies measured)
    : measured_(std::move(measured)), levels_(topology::latency_levels(measured_)),
      groups_(groups_by_cpu(measured_, levels_)), completed_(topology::completed(measured_, levels_)) {
    std::vector<double> apart;
    const auto& cpus = measured_.cpus();
    for (std::size_t a = 0; a < cpus.size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
            if (const auto ns = measured_.at(a, b);
                ns && (levels_.empty() || !has_in_one_group(levels_.size() - 1, cpus[a], cpus[b])))
                apart.push_back(*ns);
    apart_ = median(std::move(apart));
}

bool LatencyMatrix::has_in_one_group(std::size_t level, unsigned a, unsigned b) const {
    const auto& groups = groups_[level];
    return std::max(a, b) < groups.size() && groups[a] != 0 && groups[a] == groups[b];
}

double LatencyMatrix::usual_ns(unsigned a, unsigned b) const {
    for (std::size_t level = 0; level < levels_.size(); ++level)
        if (has_in_one_group(level, a, b)) return levels_[level].ns;
    return apart_;
}

KnownLatencies latencies_here(Latencies kept, const topology::Topology& topology, std::string_view model) {
    if (kept.measured() == 0) return {};
    if (!kept.is_of(topology, model))
        return {nullptr, "the latencies that are kept were measured on another machine", 0};
    return {std::make_shared<const LatencyMatrix>(std::move(kept)), "", 0};
}

} // namespace affinityd::machine
