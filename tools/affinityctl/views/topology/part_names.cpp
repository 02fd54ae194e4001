// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/part_names.hpp"

#include "affinityctl/values/counted.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::topology::Cache;
using affinityd::topology::Part;
using affinityd::topology::Topology;

PartNames::PartNames(const Topology& topology) : topology_(topology) {
    for (auto& group : topology.llc_groups())
        llcs_.emplace(std::move(group), llcs_.size());
}

std::string PartNames::of_cache(const Part& part) const {
    const Cache& cache = topology_.caches[part.index];
    std::string text = affinityd::topology::cache_name(cache);
    if (cache.size_bytes > 0) text += " " + size_text(cache.size_bytes);
    if (cache.level < 3 || cache.type == Cache::Type::instruction) return text;
    const auto found = llcs_.find(part.cpus);
    return found == llcs_.end() ? text : fmt::format("llc {} ({})", found->second, text);
}

std::string PartNames::of(const Part& part) const {
    switch (part.kind) {
    case Part::Kind::machine:
        return "machine";
    case Part::Kind::drawer:
        return fmt::format("drawer {}", part.index);
    case Part::Kind::book:
        return fmt::format("book {}", part.index);
    case Part::Kind::package:
        return fmt::format("package {}", package_number(topology_, part.index));
    case Part::Kind::die:
        return fmt::format("die {}", part.index);
    case Part::Kind::cluster:
        return fmt::format("cluster {}", part.index);
    case Part::Kind::core:
        return fmt::format("core {}", part.index);
    case Part::Kind::cpu:
        return fmt::format("CPU {}", topology_.cpus[part.index].id);
    case Part::Kind::cache:
        return of_cache(part);
    case Part::Kind::node:
        break;
    }
    const auto& node = topology_.nodes[part.index];
    return node.memory_bytes ? fmt::format("node {} ({})", node.id, size_text(*node.memory_bytes))
                             : fmt::format("node {}", node.id);
}

std::string PartNames::kind_of(const Part& core) const {
    const auto found = std::ranges::find_if(topology_.kinds,
                                            [&](const auto& kind) { return kind.cpus.contains(core.cpus); });
    return found == topology_.kinds.end() ? "" : found->name;
}

std::string size_text(std::uint64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    // A cache of 1,536 KiB is usually given as 1.5 MiB, one of 1,280 KiB as 1.25 MiB.
    while (value >= 1024 && unit + 1 < std::size(units)) {
        value /= 1024;
        ++unit;
    }
    std::string text = fmt::format("{:.{}f}", value, value < 10 ? 2 : 1);
    if (text.find('.') != std::string::npos) {
        text.erase(text.find_last_not_of('0') + 1);
        if (text.ends_with('.')) text.pop_back();
    }
    return text + " " + units[unit];
}

std::string machine_summary(const Topology& topology) {
    std::string text =
        counted(topology.online.count(), "CPU") + ", " + counted(topology.cores.size(), "core");
    if (!topology.packages.empty()) text += ", " + counted(topology.packages.size(), "package");
    if (!topology.nodes.empty()) text += ", " + counted(topology.nodes.size(), "node");
    std::uint64_t memory = 0;
    for (const auto& node : topology.nodes)
        memory += node.memory_bytes.value_or(0);
    if (memory > 0) text += ", " + size_text(memory);
    return text;
}

std::vector<std::string> boot_marks(const Topology& topology, unsigned cpu) {
    std::vector<std::string> marks;
    if (topology.isolated.contains(cpu)) marks.emplace_back("isolated");
    if (topology.nohz_full.contains(cpu)) marks.emplace_back("nohz_full");
    return marks;
}

std::vector<std::string> cpu_marks(const Topology& topology, unsigned cpu) {
    auto marks = boot_marks(topology, cpu);
    for (const auto& kind : topology.kinds)
        if (kind.cpus.contains(cpu)) marks.insert(marks.begin(), kind.name);
    return marks;
}

using affinityd::topology::Part;

PartSearch::PartSearch(const Part& machine) : machine_(machine) { add(machine); }

void PartSearch::add(const Part& part) {
    for (const auto& inner : part.parts) {
        const bool is_deepest = part.kind == Part::Kind::core || inner.kind == Part::Kind::cpu;
        if (is_deepest) {
            for (const unsigned cpu : inner.cpus)
                deepest_[cpu] = &part;
        } else {
            outer_[&inner] = &part;
            add(inner);
        }
    }
}

const Part& PartSearch::smallest_holding(const affinityd::CpuSet& cpus) const {
    if (cpus.empty()) return machine_;
    const auto deepest = deepest_.find(cpus.first());
    const Part* at = deepest == deepest_.end() ? &machine_ : deepest->second;
    while (at != &machine_ && !at->cpus.contains(cpus))
        at = outer_.at(at);
    return *at;
}

} // namespace affinityctl
