// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../machine/machines.hpp"
#include "planner/matcher.hpp"
#include "policy/reader.hpp"

#include <string>

#include <gtest/gtest.h>

/// Policies and tasks that the planner's tests build in code.
namespace affinityd::planner::test {

using machine::Machine;
using machine::test::add_nic;
using machine::test::plain;
using machine::test::two_sockets;

/// Policies out of texts, named p0, p1, ...; a fault in one of them fails the test.
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

/// No process has an ancestor under a policy.
struct NoLineage final : Lineage {
    [[nodiscard]] std::vector<std::string> ancestor_policies(const inventory::ProcessFacts&) const override {
        return {};
    }
};

/// Cores without SMT in two nodes.
inline machine::Machine without_smt(unsigned cores) {
    machine::Machine machine;
    auto& topology = machine.topology;
    topology.possible = topology.present = topology.online = topology.housekeeping =
        CpuSet::range(0, cores - 1);
    for (unsigned node = 0; node < 2; ++node) {
        const CpuSet cpus = CpuSet::range(node * cores / 2, (node + 1) * cores / 2 - 1);
        topology.packages.push_back(cpus);
        topology.nodes.push_back({node, cpus, 1U << 30, {}});
        topology.caches.push_back({3, topology::Cache::Type::unified, 1U << 20, cpus});
        for (const unsigned cpu : cpus) {
            topology.cores.push_back({cpu});
            topology.cpus.push_back(
                {cpu, static_cast<int>(node), {}, {}, static_cast<int>(cpu), node, {}, {cpu}});
        }
    }
    return machine;
}

} // namespace affinityd::planner::test
