// SPDX-License-Identifier: Apache-2.0
#include "locality/locality.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::locality {

std::string_view name_of(NearLevel level) {
    constexpr std::array names{"CPU", "core", "LLC group", "node"};
    return names[static_cast<std::size_t>(level)];
}

Nearness::Nearness(const topology::Topology& topology) {
    CpuSet seen;
    const auto add = [&](NearLevel level, unsigned cpu, const CpuSet& group) {
        groups_[static_cast<std::size_t>(level)][cpu] = group.empty() ? cpu : group.first();
    };
    for (const auto& group : topology.llc_groups())
        for (const unsigned cpu : group)
            add(NearLevel::llc, cpu, group);
    for (const auto& cpu : topology.cpus) {
        add(NearLevel::core, cpu.id, topology.core_of(cpu.id));
        add(NearLevel::node, cpu.id, topology.node_cpus_of(cpu.id));
    }
}

unsigned Nearness::group(NearLevel level, unsigned cpu) const {
    const auto& groups = groups_[static_cast<std::size_t>(level)];
    const auto found = groups.find(cpu);
    return found == groups.end() ? cpu : found->second;
}

namespace {

using Weights = std::map<unsigned, double>; ///< CPU -> reads

double& part(NearShares& shares, NearLevel level) {
    double* const parts[] = {&shares.cpu, &shares.core, &shares.llc, &shares.node};
    return *parts[static_cast<std::size_t>(level)];
}

double sum_of(const Weights& weights) {
    double sum = 0;
    for (const auto& [cpu, weight] : weights)
        sum += weight;
    return sum;
}

/// What is known of one process while its counts are added up.
struct Tally {
    std::uint64_t reads = 0, unknown = 0;
    Weights readers; ///< where those are read of which the arrival is known
    ReadMatrix matrix;
};

NearShares shares_of(const ReadMatrix& matrix, const Nearness& near) {
    NearShares shares;
    double all = 0;
    for (const auto& [pair, reads] : matrix) {
        all += static_cast<double>(reads);
        for (const auto level : near_levels)
            if (near.is_same(level, pair.first, pair.second))
                part(shares, level) += static_cast<double>(reads);
    }
    for (const auto level : near_levels)
        part(shares, level) /= std::max(all, 1.0);
    return shares;
}

/// Arrivals and readers as if the one had nothing to do with the other.
NearShares chance_of(const Weights& arrivals, const Weights& readers, const Nearness& near) {
    NearShares shares;
    for (const auto level : near_levels) {
        std::map<unsigned, double> groups;
        for (const auto& [cpu, weight] : arrivals)
            groups[near.group(level, cpu)] += weight;
        for (const auto& [cpu, weight] : readers)
            if (const auto found = groups.find(near.group(level, cpu)); found != groups.end())
                part(shares, level) += weight * found->second;
        part(shares, level) /= std::max(sum_of(arrivals) * sum_of(readers), 1.0);
    }
    return shares;
}

std::string name_of(const ReadCounts& seen, int pid) {
    const auto found = seen.names.find(pid);
    return found == seen.names.end() ? "" : found->second;
}

/// Adds a worker to all of them.
void add_to(WorkerFigures& total, const WorkerFigures& worker) {
    const auto weight = static_cast<double>(worker.reads - worker.unknown);
    auto chance = worker.chance;
    for (const auto level : near_levels)
        part(total.chance, level) += part(chance, level) * weight;
    total.reads += worker.reads;
    total.unknown += worker.unknown;
}

} // namespace

LocalityFigures figures_of(const ReadCounts& seen, const Nearness& near,
                           const std::function<bool(int pid)>& is_meant) {
    std::map<std::string, Weights> arrivals; // by the name of processes
    std::map<int, Tally> tallies;
    for (const auto& count : seen.counts) {
        if (count.arrival)
            arrivals[name_of(seen, count.pid)][*count.arrival] += static_cast<double>(count.reads);
        if (!is_meant(count.pid)) continue;
        auto& tally = tallies[count.pid];
        tally.reads += count.reads;
        if (count.arrival) {
            tally.readers[count.reader] += static_cast<double>(count.reads);
            tally.matrix[{*count.arrival, count.reader}] += count.reads;
        } else {
            tally.unknown += count.reads;
        }
    }
    LocalityFigures figures;
    for (const auto& [pid, tally] : tallies) {
        auto& worker = figures.workers.emplace_back(WorkerFigures{
            pid, name_of(seen, pid), tally.reads, tally.unknown, shares_of(tally.matrix, near), {}});
        worker.chance = chance_of(arrivals[worker.name], tally.readers, near);
        for (const auto& [pair, reads] : tally.matrix)
            figures.matrix[pair] += reads;
        add_to(figures.total, worker);
    }
    figures.total.same = shares_of(figures.matrix, near);
    const auto known = static_cast<double>(figures.total.reads - figures.total.unknown);
    for (const auto level : near_levels)
        part(figures.total.chance, level) /= std::max(known, 1.0);
    std::ranges::stable_sort(figures.workers, std::greater{}, &WorkerFigures::reads);
    return figures;
}

} // namespace affinityd::locality
