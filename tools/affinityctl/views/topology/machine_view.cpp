// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/machine_view.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/table.hpp"
#include "affinityctl/views/topology/part_names.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using affinityd::topology::Topology;

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
             printable((device.driver.empty() ? "" : device.driver + ", ") + device.address)});
    }
}

} // namespace

HangingByPart hang_up(const MachineView& view, const Part& tree) {
    HangingByPart hanging;
    hang_memory(view.topology, tree, hanging);
    for (const auto& nic : view.nics)
        if (!nic.device.empty())
            hanging[place(tree, near(view.topology, nic.node, nic.local_cpus))].push_back(
                {Hanging::Kind::nic, printable(nic.name), printable(nic_detail(nic))});
    hang_devices(view, tree, hanging);
    return hanging;
}

} // namespace affinityctl
