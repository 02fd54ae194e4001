// SPDX-License-Identifier: Apache-2.0
#include "experiments/latency/distances.hpp"

#include "experiments/frame/nearness.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace affinityd::experiments {

namespace {

using topology::Latencies;
using topology::LatencyLevel;

std::size_t triangle_cell(std::size_t a, std::size_t b) {
    return std::max(a, b) * (std::max(a, b) - 1) / 2 + std::min(a, b);
}

std::vector<std::string> names_of_kinds(const std::vector<LatencyLevel>& levels, bool has_topology) {
    std::vector<std::string> names;
    if (has_topology) {
        for (const auto near : near_ones)
            names.emplace_back(name_of(near));
        return names;
    }
    for (std::size_t level = 0; level < levels.size(); ++level)
        names.push_back("within groups of level " + std::to_string(level + 1));
    names.emplace_back(levels.empty() ? "all pairs" : "across groups");
    return names;
}

/// By level, then place: which group.
std::vector<std::vector<std::size_t>> groups_by_level(const Latencies& latencies,
                                                      const std::vector<LatencyLevel>& levels) {
    std::vector<std::vector<std::size_t>> result;
    for (const auto& level : levels) {
        auto& groups = result.emplace_back();
        for (const unsigned cpu : latencies.cpus())
            groups.push_back(static_cast<std::size_t>(
                std::ranges::find_if(level.groups, [cpu](const CpuSet& set) { return set.contains(cpu); }) -
                level.groups.begin()));
    }
    return result;
}

} // namespace

Distances::Distances(const Latencies& latencies, const std::vector<LatencyLevel>& levels,
                     const topology::Topology* topology)
    : count_(latencies.cpus().size()), kinds_(latencies.pairs()) {
    const auto names = names_of_kinds(levels, topology != nullptr);
    const auto groups = groups_by_level(latencies, levels);
    const auto near = topology != nullptr ? Nearness(*topology) : Nearness(topology::Topology{});
    const auto& cpus = latencies.cpus();
    std::vector<std::vector<double>> values(names.size());
    for (std::size_t b = 0; b < count_; ++b)
        for (std::size_t a = 0; a < b; ++a) {
            std::size_t kind = 0;
            if (topology != nullptr)
                kind = static_cast<std::size_t>(near.between(cpus[a], cpus[b]));
            else
                while (kind < groups.size() && groups[kind][a] != groups[kind][b])
                    ++kind;
            kinds_[triangle_cell(a, b)] = static_cast<unsigned char>(kind);
            if (const auto ns = latencies.at(a, b)) values[kind].push_back(*ns);
        }
    for (std::size_t kind = 0; kind < names.size(); ++kind) {
        index_of_kind_.push_back(distances_.size());
        if (!values[kind].empty()) add(names[kind], std::move(values[kind]));
    }
}

void Distances::add(std::string name, std::vector<double> values) {
    const auto [least, most] = std::ranges::minmax(values);
    Distance distance{std::move(name), values.size(), *measure::median(values), least, most, 0};
    for (double& value : values)
        value = std::abs(value - distance.median);
    distance.spread = *measure::median(values);
    distances_.push_back(std::move(distance));
}

std::size_t Distances::of(std::size_t a, std::size_t b) const {
    return index_of_kind_[kinds_[triangle_cell(a, b)]];
}

} // namespace affinityd::experiments
