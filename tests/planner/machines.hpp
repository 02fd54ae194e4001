// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/machine.hpp"
#include "planner/matcher.hpp"
#include "policy/reader.hpp"

#include <string>

#include <gtest/gtest.h>

/// Machines and policies for the planner's tests, built in code.
namespace affinityd::planner::test {

/// Two sockets, each one NUMA node and one L3, two cores of two threads: siblings 0-1, 2-3, 4-5, 6-7. CPUs of
/// `offline` are left out everywhere.
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
}

/// Policies out of texts named p0, p1, ...; a fault in them fails the test.
inline policy::PolicySet policies(const std::vector<std::string>& texts) {
    std::vector<policy::Document> documents;
    for (std::size_t i = 0; i < texts.size(); ++i)
        documents.push_back({"p" + std::to_string(i) + ".yaml", "version: 1\n" + texts[i]});
    auto result = policy::read_policies(documents);
    for (const auto& diagnostic : result.diagnostics)
        if (diagnostic.severity == policy::Severity::error)
            ADD_FAILURE() << policy::to_string(diagnostic, true);
    return std::move(result.set);
}

inline inventory::Thread thread(int tid, const std::string& comm,
                                const CpuSet& allowed = CpuSet::range(0, 7)) {
    return {{tid, static_cast<std::uint64_t>(tid) * 10}, comm, 0, allowed};
}

/// Nobody has an ancestor.
struct NoLineage final : Lineage {
    [[nodiscard]] std::vector<std::string> ancestor_policies(const inventory::ProcessFacts&) const override {
        return {};
    }
};

} // namespace affinityd::planner::test
