// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/cpu_expr.hpp"

#include "host/root.hpp"
#include "machine/machine.hpp"
#include "machine/pods.hpp"
#include "netdev/reader.hpp"
#include "planner/slots.hpp"

#include <functional>
#include <map>
#include <utility>

namespace affinityctl {

namespace machine_room = affinityd::machine;
namespace planner = affinityd::planner;
using affinityd::CpuSet;
using affinityd::policy::CpuExpr;

namespace {

using Near = std::map<std::string, CpuSet, std::less<>>;
using Found = std::expected<CpuSet, CpuExprFault>;

std::unexpected<CpuExprFault> failed(std::string message, std::string hint = {}) {
    return std::unexpected(not_in_text(std::move(message), std::move(hint)));
}

/// The first `nic` or `nic:NAME` in the expression; with `bare` the first without a name.
const CpuExpr* find_nic(const CpuExpr& expr, bool bare) {
    if (expr.op == CpuExpr::Op::nic && (!bare || expr.name.empty())) return &expr;
    for (const auto& child : expr.children)
        if (const auto* found = find_nic(child, bare)) return found;
    return nullptr;
}

/// The meaning of the bare `nic` at `place`.
Found bare_nic(const std::vector<std::string>& names, const CpuExpr& place,
               const machine_room::Machine& machine, const Near& near) {
    CpuSet cpus;
    for (const auto& name : names) {
        CpuExpr asked;
        asked.op = CpuExpr::Op::nic;
        asked.name = name;
        const auto found = planner::evaluate(asked, machine.topology, near, {});
        if (!found) return failed("--nic: " + found.error().message, found.error().hint);
        cpus |= *found;
    }
    if (!names.empty()) return cpus;
    std::string known;
    bool all_alike = true;
    for (const auto& nic : machine.nics) {
        if (nic.device.empty()) continue;
        const auto here = machine_room::near_cpus(machine, nic);
        all_alike = all_alike && (cpus.empty() || cpus == here);
        cpus |= here;
        known += (known.empty() ? "" : ", ") + nic.name;
    }
    if (!known.empty() && all_alike) return cpus;
    CpuExprFault fault{place.offset, place.length, "no interface here has a device", ""};
    if (!known.empty()) {
        fault.message = "which interface? Not the same CPUs are near to all";
        fault.hint = "name it with --nic or write nic:NAME; there are " + known;
    }
    return std::unexpected(std::move(fault));
}

} // namespace

CpuExprFault not_in_text(std::string message, std::string hint) {
    return {0, 0, std::move(message), std::move(hint)};
}

std::expected<CpuSet, CpuExprFault> evaluate_cpu_expr(const CpuExpr& expr,
                                                      const std::vector<std::string>& names,
                                                      machine_room::Machine& machine,
                                                      const affinityd::host::Root& root) {
    Near near;
    CpuSet own;
    if (find_nic(expr, false) != nullptr) {
        auto nics = affinityd::netdev::read_nics(root);
        if (!nics) return failed(nics.error().to_string());
        machine.nics = std::move(*nics);
        near = machine_room::nic_cpus(machine);
    }
    if (const auto* bare = find_nic(expr, true)) {
        const auto found = bare_nic(names, *bare, machine, near);
        if (!found) return found;
        own = *found;
    }
    auto& topology = machine.topology;
    if (affinityd::policy::has_word(expr, CpuExpr::Op::pods))
        topology.pods = machine_room::read_own_cpus(root, topology.online);
    auto cpus = planner::evaluate(expr, machine.topology, near, own);
    if (!cpus) return std::unexpected(std::move(cpus.error()));
    return std::move(*cpus);
}

} // namespace affinityctl
