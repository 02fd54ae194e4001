// SPDX-License-Identifier: Apache-2.0
#include "machine_view.hpp"

#include "table.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using affinityd::topology::Cache;
using affinityd::topology::Topology;

std::string counted(std::size_t number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string cache_text(const Topology& topology, const Part& part) {
    const Cache& cache = topology.caches[part.index];
    std::string text = affinityd::topology::cache_name(cache);
    if (cache.size_bytes > 0) text += " " + size_text(cache.size_bytes);
    if (cache.level < 3 || cache.type == Cache::Type::instruction) return text;
    const auto groups = topology.llc_groups();
    const auto found = std::ranges::find(groups, part.cpus);
    return found == groups.end() ? text : fmt::format("llc {} ({})", found - groups.begin(), text);
}

/// CPUs near a device: its node's, else those it names itself, as far as they are online.
CpuSet near(const Topology& topology, const std::optional<unsigned>& node, const CpuSet& local) {
    if (node)
        if (const auto* home = topology.node(*node); home != nullptr && !home->cpus.empty())
            return home->cpus;
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

/// CPUs of the node with CPUs that is nearest to a node without.
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

} // namespace

std::string size_text(std::uint64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    // Caches of 1,536 KiB are 1.5 MiB, those of 1,280 KiB are spoken of as 1.25 MiB.
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

std::string part_name(const Topology& topology, const Part& part) {
    switch (part.kind) {
    case Part::Kind::machine:
        return "machine";
    case Part::Kind::drawer:
        return fmt::format("drawer {}", part.index);
    case Part::Kind::book:
        return fmt::format("book {}", part.index);
    case Part::Kind::package:
        return fmt::format("package {}", package_number(topology, part.index));
    case Part::Kind::die:
        return fmt::format("die {}", part.index);
    case Part::Kind::cluster:
        return fmt::format("cluster {}", part.index);
    case Part::Kind::core:
        return fmt::format("core {}", part.index);
    case Part::Kind::cpu:
        return fmt::format("CPU {}", topology.cpus[part.index].id);
    case Part::Kind::cache:
        return cache_text(topology, part);
    case Part::Kind::node:
        break;
    }
    const auto& node = topology.nodes[part.index];
    return node.memory_bytes ? fmt::format("node {} ({})", node.id, size_text(*node.memory_bytes))
                             : fmt::format("node {}", node.id);
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

std::vector<std::string> cpu_marks(const Topology& topology, unsigned cpu) {
    std::vector<std::string> marks;
    for (const auto& kind : topology.kinds)
        if (kind.cpus.contains(cpu)) marks.push_back(kind.name);
    if (topology.isolated.contains(cpu)) marks.emplace_back("isolated");
    if (topology.nohz_full.contains(cpu)) marks.emplace_back("nohz_full");
    return marks;
}

const Part& smallest_holding(const Part& whole, const CpuSet& cpus) {
    const Part* at = &whole;
    while (!cpus.empty() && at->kind != Part::Kind::core) {
        const auto found = std::ranges::find_if(at->parts, [&](const Part& part) {
            return part.kind != Part::Kind::cpu && part.cpus.contains(cpus);
        });
        if (found == at->parts.end()) break;
        at = &*found;
    }
    return *at;
}

std::map<const Part*, std::vector<Hanging>> hang_up(const MachineView& view, const Part& tree) {
    const Topology& topology = view.topology;
    std::map<const Part*, std::vector<Hanging>> hanging;
    // At a node or what is around it: that an interface is near one cache of a node is more than the kernel
    // says.
    const auto place = [&](const CpuSet& cpus) {
        const Part* best = &tree;
        for (const Part* at = &tree; at != nullptr && !cpus.empty();) {
            if (at->kind <= Part::Kind::node) best = at;
            const auto found =
                std::ranges::find_if(at->parts, [&](const Part& part) { return part.cpus.contains(cpus); });
            at = found == at->parts.end() ? nullptr : &*found;
        }
        return best;
    };
    for (const auto& node : topology.nodes) {
        if (!node.cpus.empty()) continue;
        unsigned distance = 0;
        const auto cpus = nearest_cpus(topology, node, distance);
        std::string detail = node.memory_bytes ? size_text(*node.memory_bytes) + ", no CPUs" : "no CPUs";
        if (!cpus.empty()) detail += fmt::format(", distance {}", distance);
        hanging[place(cpus)].push_back(
            {Hanging::Kind::memory, fmt::format("node {}", node.id), std::move(detail)});
    }
    for (const auto& nic : view.nics)
        if (!nic.device.empty())
            hanging[place(near(topology, nic.node, nic.local_cpus))].push_back(
                {Hanging::Kind::nic, printable(nic.name), printable(nic_detail(nic))});
    for (const auto& device : view.devices) {
        if (std::ranges::find(view.nics, device.address, &affinityd::netdev::Nic::pci) != view.nics.end())
            continue;
        hanging[place(near(topology, device.node, device.local_cpus))].push_back(
            {Hanging::Kind::device, std::string(affinityd::topology::pci_class_name(device.class_code)),
             printable((device.driver.empty() ? "" : device.driver + ", ") + device.address)});
    }
    return hanging;
}

} // namespace affinityctl
