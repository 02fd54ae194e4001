// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/machine_view.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::counted;
using affinityd::CpuSet;
using affinityd::topology::Cache;
using affinityd::topology::Topology;

std::string short_list(const affinityd::CpuSet& cpus) {
    constexpr std::size_t most = 160, kept = 80;
    std::string list = cpus.to_list();
    if (list.size() <= most) return list;
    list.resize(list.rfind(',', kept) + 1);
    return list + "... (" + counted(cpus.count(), "CPU") + ")";
}

namespace {

/// CPUs near a device: those of its node, else the online ones of its own list.
CpuSet near(const Topology& topology, const std::optional<unsigned>& node, const CpuSet& local) {
    if (node)
        if (const auto* found = topology.node(*node); found != nullptr && !found->cpus.empty())
            return found->cpus;
    return local & topology.online;
}

std::string nic_detail(const affinityd::netdev::Nic& nic) {
    std::string text = nic.driver;
    const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
    if (!nic.pci.empty()) add(nic.pci);
    const auto queues = static_cast<std::size_t>(std::ranges::count(
        nic.queues, affinityd::netdev::Direction::rx, &affinityd::netdev::Queue::direction));
    if (queues > 0) add(counted(queues, "queue"));
    if (!nic.msi_irqs.empty()) add(counted(nic.msi_irqs.size(), "vector"));
    if (!nic.up && nic.operstate == "down") add("down");
    return text;
}

/// For a node without CPUs: the CPUs of the nearest node that has some.
CpuSet nearest_cpus(const Topology& topology, const affinityd::topology::Node& node, unsigned& distance) {
    CpuSet cpus;
    distance = std::numeric_limits<unsigned>::max();
    for (std::size_t i = 0; i < topology.nodes.size() && i < node.distance.size(); ++i)
        if (!topology.nodes[i].cpus.empty() && node.distance[i] < distance) {
            distance = node.distance[i];
            cpus = topology.nodes[i].cpus;
        }
    return cpus;
}

/// At a node or a larger part: the kernel does not say that an interface is near one cache of a node.
const Part* place(const Part& tree, const CpuSet& cpus) {
    const Part* best = &tree;
    for (const Part* at = &tree; at != nullptr && !cpus.empty();) {
        if (at->kind <= Part::Kind::node) best = at;
        const auto found =
            std::ranges::find_if(at->parts, [&](const Part& part) { return part.cpus.contains(cpus); });
        at = found == at->parts.end() ? nullptr : &*found;
    }
    return best;
}

void hang_memory(const Topology& topology, const Part& tree, HangingByPart& hanging) {
    for (const auto& node : topology.nodes) {
        if (!node.cpus.empty()) continue;
        unsigned distance = 0;
        const auto cpus = nearest_cpus(topology, node, distance);
        std::string detail = node.memory_bytes ? size_text(*node.memory_bytes) + ", no CPUs" : "no CPUs";
        if (!cpus.empty()) detail += fmt::format(", distance {}", distance);
        hanging[place(tree, cpus)].push_back(
            {Hanging::Kind::memory, fmt::format("node {}", node.id), std::move(detail)});
    }
}

void hang_devices(const MachineView& view, const Part& tree, HangingByPart& hanging) {
    for (const auto& device : view.devices) {
        if (std::ranges::find(view.nics, device.address, &affinityd::netdev::Nic::pci) != view.nics.end())
            continue;
        hanging[place(tree, near(view.topology, device.node, device.local_cpus))].push_back(
            {Hanging::Kind::device, std::string(affinityd::topology::pci_class_name(device.class_code)),
             (device.driver.empty() ? "" : device.driver + ", ") + device.address});
    }
}

} // namespace

HangingByPart hang_up(const MachineView& view, const Part& tree) {
    HangingByPart hanging;
    hang_memory(view.topology, tree, hanging);
    for (const auto& nic : view.nics)
        if (!nic.device.empty())
            hanging[place(tree, near(view.topology, nic.node, nic.local_cpus))].push_back(
                {Hanging::Kind::nic, nic.name, nic_detail(nic)});
    hang_devices(view, tree, hanging);
    return hanging;
}

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

namespace {
/// In the order of Part::Kind.
constexpr std::array part_words{"machine", "drawer", "book",    "package", "node",
                                "die",     "cache",  "cluster", "core",    "CPU"};

std::size_t number_of(const Topology& topology, const Part& part) {
    return part.kind == Part::Kind::node  ? topology.nodes[part.index].id
           : part.kind == Part::Kind::cpu ? topology.cpus[part.index].id
                                          : part.index;
}
} // namespace

std::string part_id(const Topology& topology, const Part& part) {
    if (part.kind == Part::Kind::machine) return "machine";
    return fmt::format(
        "{}-{}", part.kind == Part::Kind::cpu ? "cpu" : part_words.at(static_cast<std::size_t>(part.kind)),
        number_of(topology, part));
}

std::string PartNames::of(const Part& part) const {
    if (part.kind == Part::Kind::machine) return "machine";
    if (part.kind == Part::Kind::cache) return of_cache(part);
    auto name = fmt::format("{} {}", part_words.at(static_cast<std::size_t>(part.kind)),
                            part.kind == Part::Kind::package ? package_number(topology_, part.index)
                                                             : number_of(topology_, part));
    if (part.kind == Part::Kind::node)
        if (const auto memory = topology_.nodes[part.index].memory_bytes)
            name += " (" + size_text(*memory) + ")";
    return name;
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

namespace {

Claim& claim_of(CpuLoad& load, std::size_t tenant) {
    if (load.claims.empty() || load.claims.back().tenant != tenant) load.claims.push_back({.tenant = tenant});
    return load.claims.back();
}

void add_pin(CpuLoads& loads, const Pin& pin, std::size_t tenant, const CpuSet& cpus, bool narrow) {
    for (const unsigned cpu : cpus) {
        auto& load = loads[cpu];
        auto& claim = claim_of(load, tenant);
        claim.hold = std::max(claim.hold, narrow ? Hold::narrow : Hold::wide);
        ++(pin.interrupt ? claim.irqs : claim.pins);
        if (narrow) (pin.interrupt ? load.interrupts : load.tasks) += pin.tasks;
        if (load.first_pins.size() < CpuLoad::most_pins) load.first_pins.push_back({tenant, &pin});
    }
}

} // namespace

std::size_t CpuLoad::pins() const {
    std::size_t sum = 0;
    for (const auto& claim : claims)
        sum += claim.pins + claim.irqs;
    return sum;
}

CpuLoads loads_of(const MachineView& view) {
    CpuLoads loads;
    for (std::size_t i = 0; i < view.occupancy.tenants.size(); ++i) {
        const auto& tenant = view.occupancy.tenants[i];
        for (const unsigned cpu : tenant.cpus& view.topology.online)
            claim_of(loads[cpu], i);
        for (const auto& pin : tenant.pins) {
            const CpuSet cpus = pin.cpus & view.topology.online;
            if (!cpus.empty())
                add_pin(loads, pin, i, cpus, view.topology.core_of(cpus.first()).contains(cpus));
        }
    }
    return loads;
}

Badges badges_of(const MachineView& view, const Part& machine) {
    const PartSearch search(machine);
    Badges badges;
    for (std::size_t i = 0; i < view.occupancy.tenants.size(); ++i)
        for (const auto& pin : view.occupancy.tenants[i].pins) {
            const CpuSet cpus = pin.cpus & view.topology.online;
            const Part& part = search.smallest_holding(cpus);
            if (part.kind == Part::Kind::core || cpus.empty()) continue;
            auto& badge = badges[&part][i];
            (pin.interrupt ? badge.interrupts : badge.tasks) += pin.tasks;
        }
    return badges;
}

std::string amount_of(const Occupancy& occupancy, unsigned tasks) { return counted(tasks, occupancy.unit); }

} // namespace affinityctl
