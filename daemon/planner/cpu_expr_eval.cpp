// SPDX-License-Identifier: Apache-2.0
#include "planner/cpu_expr_eval.hpp"

#include "base/glob.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

using policy::CpuExpr;
using policy::CpuExprError;
using topology::Topology;
using Evaluated = std::expected<CpuSet, CpuExprError>;
using Nics = std::map<std::string, CpuSet, std::less<>>;
using Op = CpuExpr::Op;

std::unexpected<CpuExprError> wrong(const CpuExpr& expr, std::string message, std::string hint) {
    return std::unexpected(CpuExprError{expr.offset, expr.length, std::move(message), std::move(hint)});
}

/// Groups that are numbered 0, 1, 2, ... in the order of their first CPUs.
Evaluated counted(const CpuExpr& expr, const std::vector<CpuSet>& groups, const char* what) {
    CpuSet cpus;
    for (const unsigned id : expr.ids) {
        if (id >= groups.size())
            return wrong(expr, fmt::format("there is no {} {} on this machine", what, id),
                         groups.empty() ? fmt::format("it has none")
                                        : fmt::format("it has 0-{}", groups.size() - 1));
        cpus |= groups[id];
    }
    return cpus;
}

Evaluated nodes(const CpuExpr& expr, const Topology& topology) {
    CpuSet cpus;
    CpuSet known;
    for (const auto& node : topology.nodes)
        known.insert(node.id);
    if (topology.nodes.empty() && expr.ids == CpuSet{0})
        return topology.online; // a machine without NUMA is node 0
    for (const unsigned id : expr.ids) {
        const auto* node = topology.node(id);
        if (node == nullptr)
            return wrong(expr, fmt::format("there is no NUMA node {} on this machine", id),
                         known.empty() ? "it has none" : "it has " + known.to_list());
        cpus |= node->cpus;
    }
    return cpus;
}

/// By the numbers that the kernel gives packages; where it gives none, by their order.
Evaluated sockets(const CpuExpr& expr, const Topology& topology) {
    CpuSet cpus;
    CpuSet known;
    for (const auto& cpu : topology.cpus)
        if (cpu.package) known.insert(static_cast<unsigned>(*cpu.package));
    if (known.empty()) return counted(expr, topology.packages, "socket");
    for (const unsigned id : expr.ids) {
        if (!known.contains(id))
            return wrong(expr, fmt::format("there is no socket {} on this machine", id),
                         "it has " + known.to_list());
        for (const auto& cpu : topology.cpus)
            if (cpu.package == static_cast<int>(id)) cpus.insert(cpu.id);
    }
    return cpus;
}

Evaluated numbers(const CpuExpr& expr, const Topology& topology) {
    const CpuSet missing = expr.ids - topology.possible;
    if (missing.empty()) return expr.ids;
    return wrong(expr, fmt::format("CPU {} does not exist on this machine", missing.to_list()),
                 "it has CPUs " + topology.possible.to_list());
}

Evaluated kinds(const CpuExpr& expr, const Topology& topology) {
    std::string known;
    for (const auto& kind : topology.kinds) {
        if (kind.name == expr.name) return kind.cpus;
        known += (known.empty() ? "" : ", ") + kind.name;
    }
    if (topology.kinds.empty() && expr.name == "performance")
        return topology.online; // all cores are alike, so each is of the best kind
    return wrong(expr, fmt::format("there is no kind of core called '{}' on this machine", expr.name),
                 known.empty() ? "all its cores are alike" : "it has " + known);
}

Evaluated interfaces(const CpuExpr& expr, const Nics& nics, const CpuSet& own) {
    if (expr.name.empty()) return own;
    CpuSet cpus;
    for (const auto& [name, near] : nics)
        if (glob_match(expr.name, name)) cpus |= near;
    if (!cpus.empty()) return cpus;
    std::string known;
    for (const auto& [name, near] : nics)
        known += (known.empty() ? "" : ", ") + name;
    return wrong(expr, fmt::format("there is no interface '{}' here", expr.name),
                 known.empty() ? "" : "there are " + known);
}

} // namespace

Evaluated evaluate(const CpuExpr& expr, const Topology& topology, const Nics& nics, const CpuSet& own) {
    switch (expr.op) {
    case Op::list:
        return numbers(expr, topology);
    case Op::all:
        return topology.online;
    case Op::isolated:
        return topology.isolated;
    case Op::nohz_full:
        return topology.nohz_full;
    case Op::housekeeping:
        return topology.housekeeping;
    case Op::smt:
        return topology.smt_secondary();
    case Op::node:
        return nodes(expr, topology);
    case Op::socket:
        return sockets(expr, topology);
    case Op::die:
        return counted(expr, topology.dies, "die");
    case Op::cluster:
        return counted(expr, topology.clusters, "cluster");
    case Op::llc:
        return counted(expr, topology.llc_groups(), "last-level-cache group");
    case Op::core:
        return counted(expr, topology.cores, "core");
    case Op::kind:
        return kinds(expr, topology);
    case Op::nic:
        return interfaces(expr, nics, own);
    default:
        break;
    }
    auto left = evaluate(expr.children.front(), topology, nics, own);
    if (!left) return left;
    if (expr.op == Op::complement) return topology.online - *left;
    const auto right = evaluate(expr.children.back(), topology, nics, own);
    if (!right) return right;
    if (expr.op == Op::unite) return *left | *right;
    if (expr.op == Op::intersect) return *left & *right;
    return *left - *right;
}

} // namespace affinityd::planner
