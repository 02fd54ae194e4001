// SPDX-License-Identifier: Apache-2.0
#include "locality/locality.hpp"

#include "netdev/lower.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

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

/// Sums of one process, while its counts are added up.
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

// The sources of packets on a CPU.

using machine::Machine;
using netdev::Nic;

namespace {

constexpr unsigned loopback = 1; // LOOPBACK_IFINDEX, include/net/flow.h

struct Source {
    std::string text;
    bool is_interrupt = false;
};

const CpuSet& where(const irq::Irq& line) {
    static const CpuSet nowhere;
    if (line.effective && !line.effective->empty()) return *line.effective;
    return line.requested ? *line.requested : nowhere;
}

std::string queue_name(const Nic& nic, std::optional<unsigned> queue) {
    return queue ? fmt::format("{} rx-{}", nic.name, *queue) : nic.name;
}

bool receives(const machine::Vector& vector) {
    return vector.kind == irq::Kind::rx || vector.kind == irq::Kind::txrx ||
           vector.kind == irq::Kind::data_unknown;
}

/// The setting that moves packets from a queue to another CPU than that of its interrupt; "" if nothing is
/// set.
std::string mover(const netdev::Queue& queue, unsigned cpu) {
    if (queue.steering && queue.steering->contains(cpu))
        return queue.flow_count.value_or(0) > 0 ? "RPS or RFS" : "RPS";
    return "";
}

/// Where a known receive queue's packets are taken in.
Source of_queue(const Machine& machine, const Nic& nic, const netdev::Queue& queue, unsigned cpu) {
    const auto name = queue_name(nic, queue.index);
    const auto moved = mover(queue, cpu);
    for (const auto& vector : machine.vectors_of(nic.name)) {
        const bool is_own =
            queue.irq ? vector.irq == *queue.irq : vector.queue == queue.index && receives(vector);
        if (!is_own) continue;
        const auto* line = machine.irqs.find(vector.irq);
        if (line == nullptr || where(*line).contains(cpu))
            return {fmt::format("{} (IRQ {})", name, vector.irq), true};
        if (queue.napi_thread) return {fmt::format("{} (NAPI thread {})", name, *queue.napi_thread)};
        const auto why = moved.empty() ? "" : ", moved by " + moved;
        return {fmt::format("{} (IRQ {} on CPU {}{})", name, vector.irq, where(*line).to_list(), why)};
    }
    if (queue.napi_thread) return {fmt::format("{} (NAPI thread {})", name, *queue.napi_thread)};
    if (!moved.empty()) return {fmt::format("{} ({})", name, moved)};
    return {fmt::format("{} (no interrupt: where the sender or the NIC below works)", name)};
}

/// Which queue of an interface may bring packets to this CPU, by what is set now.
Source of_nic(const Machine& machine, const Nic& nic, unsigned cpu) {
    std::string names;
    for (const auto& vector : machine.vectors_of(nic.name)) {
        const auto* line = machine.irqs.find(vector.irq);
        if (!receives(vector) || line == nullptr || !where(*line).contains(cpu)) continue;
        names += fmt::format("{}{} (IRQ {})", names.empty() ? "" : ", ", queue_name(nic, vector.queue),
                             vector.irq);
    }
    if (!names.empty()) return {names, true};
    for (const auto& queue : nic.queues)
        if (const auto why = mover(queue, cpu); queue.direction == netdev::Direction::rx && !why.empty())
            return {fmt::format("{} ({})", queue_name(nic, queue.index), why)};
    if (nic.threaded_napi) return {nic.name + " (a NAPI thread)"};
    if (machine.flow_entries.value_or(0) > 0) return {nic.name + " (RFS)"};
    if (machine.vectors_of(nic.name).empty())
        return {nic.name + " (no interrupt: where the sender or the NIC below works)"};
    return {nic.name + " (no interrupt of it goes there now)"};
}

const Nic* by_index(const Machine& machine, unsigned device) {
    const auto found = std::ranges::find(machine.nics, device, &Nic::ifindex);
    return found == machine.nics.end() ? nullptr : &*found;
}

Source of_flow(const Machine& machine, const ReadCount& flow, std::uint64_t space, unsigned cpu) {
    for (const auto& nic : machine.nics)
        for (const auto& queue : nic.queues)
            if (flow.napi != 0 && queue.napi_id == flow.napi && queue.direction == netdev::Direction::rx)
                return of_queue(machine, nic, queue, cpu);
    if (flow.device == loopback) return {"loopback (the sender's CPU)"};
    if (flow.network_space != 0 && flow.network_space != space)
        return {"an interface in another network namespace"};
    const auto* nic = by_index(machine, flow.device);
    if (nic == nullptr) return {"an interface that is not known"};
    const auto under = netdev::Stacks(machine.nics).under(*nic);
    Source best = of_nic(machine, *nic, cpu);
    for (const auto* lower : under)
        if (auto source = of_nic(machine, *lower, cpu); source.is_interrupt && !best.is_interrupt)
            best = std::move(source);
    return best;
}

} // namespace

std::vector<ArrivalPlace> arrival_places(const std::vector<ReadCount>& counts, const Machine& machine,
                                         std::uint64_t space, const std::function<bool(int pid)>& is_meant) {
    using Flow = std::tuple<unsigned, std::uint64_t, unsigned, unsigned>; // arrival, namespace, device, NAPI
    std::map<Flow, ReadCount> flows;
    for (const auto& count : counts) {
        if (!count.arrival || !is_meant(count.pid)) continue;
        const Flow key{*count.arrival, count.network_space, count.device, count.napi};
        const auto [found, is_new] = flows.try_emplace(key, count);
        if (!is_new) found->second.reads += count.reads;
    }
    std::map<unsigned, ArrivalPlace> places;
    std::map<unsigned, std::map<std::string, std::uint64_t>> texts; // arrival -> source -> reads
    for (const auto& [key, flow] : flows) {
        const unsigned cpu = *flow.arrival;
        const auto source = of_flow(machine, flow, space, cpu);
        auto& place = places[cpu];
        place.cpu = cpu;
        place.reads += flow.reads;
        place.is_interrupt = place.is_interrupt || source.is_interrupt;
        texts[cpu][source.text] += flow.reads;
    }
    std::vector<ArrivalPlace> list;
    for (auto& [cpu, place] : places) {
        std::vector<std::pair<std::uint64_t, std::string>> sources;
        for (const auto& [text, reads] : texts[cpu])
            sources.emplace_back(reads, text);
        std::ranges::stable_sort(sources, std::greater{}, [](const auto& source) { return source.first; });
        for (auto& source : sources)
            place.sources.push_back(std::move(source.second));
        list.push_back(std::move(place));
    }
    std::ranges::stable_sort(list, std::greater{}, &ArrivalPlace::reads);
    return list;
}

} // namespace affinityd::locality
