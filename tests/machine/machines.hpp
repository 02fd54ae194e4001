// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"

#include <string>

/// Machines that tests build in code.
namespace affinityd::machine::test {

/// Two sockets, each with one NUMA node, one L3 and two cores of two threads: siblings 0-1, 2-3, 4-5, 6-7.
/// CPUs of `offline` are in none of them.
inline topology::Topology two_sockets(const CpuSet& offline = {}) {
    topology::Topology topology;
    topology.possible = topology.present = CpuSet::range(0, 7);
    topology.online = topology.present - offline;
    topology.offline = offline;
    topology.housekeeping = topology.online;
    for (unsigned node = 0; node < 2; ++node) {
        const CpuSet cpus = CpuSet::range(node * 4, node * 4 + 3) & topology.online;
        topology.packages.push_back(cpus);
        topology.caches.push_back({3, topology::Cache::Type::unified, 1U << 20, cpus});
        topology.nodes.push_back({node, cpus, 1U << 30,
                                  node == 0 ? std::vector<unsigned>{10, 21} : std::vector<unsigned>{21, 10}});
        for (unsigned core = 0; core < 2; ++core) {
            const CpuSet smt = CpuSet::range(node * 4 + core * 2, node * 4 + core * 2 + 1) & topology.online;
            if (smt.empty()) continue;
            topology.cores.push_back(smt);
            for (const unsigned cpu : smt)
                topology.cpus.push_back(
                    {cpu, static_cast<int>(node), {}, {}, static_cast<int>(core), node, {}, smt});
        }
    }
    return topology;
}

/// A machine without NICs.
inline Machine plain(const CpuSet& offline = {}) { return {two_sockets(offline), {}, {}}; }

/// A NIC with `queues` paired queues whose interrupts are numbered from `first_irq`.
inline netdev::Nic nic(const std::string& name, unsigned node, unsigned queues, unsigned first_irq) {
    netdev::Nic nic;
    nic.name = name;
    nic.device = "devices/pci0000:00/" + name;
    nic.up = true;
    nic.node = node;
    nic.local_cpus = CpuSet::range(node * 4, node * 4 + 3);
    for (unsigned i = 0; i < queues; ++i) {
        nic.msi_irqs.push_back(first_irq + i);
        nic.queues.push_back({netdev::Direction::rx, i, {}, {}, {}, CpuSet{}, {}});
    }
    for (unsigned i = 0; i < queues; ++i)
        nic.queues.push_back({netdev::Direction::tx, i, {}, {}, {}, CpuSet{}, {}});
    return nic;
}

inline void add_nic(Machine& machine, const std::string& name, unsigned node, unsigned queues,
                    unsigned first_irq) {
    machine.nics.push_back(nic(name, node, queues, first_irq));
    for (unsigned i = 0; i < queues; ++i) {
        irq::Irq line;
        line.number = first_irq + i;
        line.chip = "PCI-MSIX";
        line.actions = {name + "-TxRx-" + std::to_string(i)};
        line.requested = CpuSet::range(0, 7);
        machine.irqs.irqs.push_back(std::move(line));
    }
    link_vectors(machine);
}

} // namespace affinityd::machine::test
