// SPDX-License-Identifier: Apache-2.0
#include "planner/cpu_load.hpp"

#include <algorithm>

namespace affinityd::planner {

namespace {

template <class Value>
void put(std::vector<Value>& values, std::size_t at, Value amount) {
    if (at >= values.size()) values.resize(at + 1);
    values[at] += amount;
}

template <class Value>
Value get(const std::vector<Value>& values, std::size_t at) {
    return at < values.size() ? values[at] : Value{};
}

/// The part of each of the CPUs. The remainder of the division is dropped, in adding and taking away alike.
Weight part_of(Weight amount, const CpuSet& cpus) {
    return cpus.empty() ? 0 : amount / static_cast<Weight>(cpus.count());
}

} // namespace

CpuLoad::CpuLoad(const topology::Topology& topology) : all_(topology.online) {
    if (topology.online.empty()) return;
    places_.resize(topology.online.last() + 1U);
    for (unsigned cpu = 0; cpu < places_.size(); ++cpu)
        places_[cpu].core = cpu;
    for (const unsigned cpu : topology.online) {
        const CpuSet core = topology.core_of(cpu);
        places_[cpu].core = core.empty() ? cpu : core.first();
    }
    const auto number = [&](const CpuSet& cpus, unsigned Where::*level, unsigned id) {
        for (const unsigned cpu : cpus)
            if (cpu < places_.size()) places_[cpu].*level = id;
    };
    unsigned id = 0;
    for (const auto& group : topology.measured.empty() ? topology.llc_groups() : topology.measured)
        number(group, &Where::group, id++);
    id = 0;
    for (const auto& node : topology.nodes)
        number(node.cpus, &Where::node, id++);
    for (const unsigned cpu : topology.online) {
        if (places_[cpu].core != cpu) continue;
        put(group_cores_, places_[cpu].group, 1U);
        put(node_cores_, places_[cpu].node, 1U);
    }
}

void CpuLoad::change(const CpuSet& cpus, Weight from, Weight to, Around* own) {
    const Weight part = part_of(to, cpus) - part_of(from, cpus);
    if (part == 0) return;
    for (const unsigned cpu : cpus) {
        if (!counts(cpu)) continue;
        const auto [core, group, node] = where(cpu);
        put(cpus_, cpu, part);
        put(cores_, core, part);
        for (auto* sums : {&around_, own}) {
            if (sums == nullptr) continue;
            put(sums->groups, group, part);
            put(sums->nodes, node, part);
        }
    }
}

CpuLoad::Level CpuLoad::place(const CpuSet& cpus) const {
    Level level;
    for (const unsigned cpu : cpus) {
        level.core += on_core(cpu);
        level.cpu += on_cpu(cpu);
    }
    return level;
}

void CpuLoad::add_surroundings(Level& level, unsigned cpu, const Around& own) const {
    const auto [core, group, node] = where(cpu);
    const auto each = [](Weight load, unsigned cores) {
        return load / static_cast<Weight>(std::max(1U, cores));
    };
    level.group = each(get(around_.groups, group) - get(own.groups, group), get(group_cores_, group));
    level.node = each(get(around_.nodes, node) - get(own.nodes, node), get(node_cores_, node));
}

CpuLoad::Level CpuLoad::of(const CpuSet& cpus) const {
    Level level = place(cpus);
    add_surroundings(level, cpus.first(), {});
    return level;
}

Weight CpuLoad::on_core(unsigned cpu) const { return get(cores_, where(cpu).core); }

Weight CpuLoad::busiest() const { return cores_.empty() ? 0 : std::ranges::max(cores_); }

} // namespace affinityd::planner
