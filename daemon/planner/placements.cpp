// SPDX-License-Identifier: Apache-2.0
#include "planner/placements.hpp"

#include "machine/near.hpp"
#include "planner/cpu_expr_eval.hpp"
#include "planner/interfaces.hpp"
#include "planner/lanes.hpp"
#include "planner/shared_lines.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

using machine::Machine;
using policy::Policy;
using policy::PolicySet;

/// What the steps of one compile() share.
struct Run {
    const PolicySet& policies;
    const Machine& machine;
    const NicUsage& usage;
    std::map<std::string, CpuSet, std::less<>> near;
    Placements result;
};

std::optional<CpuSet> evaluated(Run& run, const Policy& policy, const policy::CpuExpr& expr,
                                const CpuSet& own_nics) {
    auto cpus = evaluate(expr, run.machine.topology, run.near, own_nics);
    if (cpus) return *cpus & run.result.online;
    run.result.problems.push_back(
        {policy.name, policy::to_string(expr),
         cpus.error().message + (cpus.error().hint.empty() ? "" : " (" + cpus.error().hint + ")")});
    return std::nullopt;
}

/// The CPUs that a placement may use; no value, and a problem, if there are none.
std::optional<CpuSet> allowed_cpus(Run& run, const Policy& policy, const policy::Placement& placement,
                                   const CpuSet& own_nics) {
    const auto& topology = run.machine.topology;
    if (!placement.cpus) {
        // The administrator has set isolated CPUs apart: only a policy that names them gets them.
        const CpuSet usual = run.result.online - topology.isolated;
        return usual.empty() ? run.result.online : usual;
    }
    auto cpus = evaluated(run, policy, *placement.cpus, own_nics);
    if (!cpus) return std::nullopt;
    if (!cpus->empty()) return cpus;
    run.result.problems.push_back(
        {policy.name, policy::to_string(*placement.cpus), "no online CPU is left of this set"});
    return std::nullopt;
}

/// The scheduler does not balance load over isolated CPUs: a task with several of them in its mask stays on
/// one. So each task is given one of its own.
policy::Placement for_isolated(Run& run, const Policy& policy, policy::Placement placement,
                               const CpuSet& allowed) {
    const auto& isolated = run.machine.topology.isolated;
    if (allowed.count() < 2 || !isolated.contains(allowed) || placement.bind == policy::Bind::cpu)
        return placement;
    run.result.problems.push_back(
        {policy.name, allowed.to_list(),
         "these CPUs are isolated and not load-balanced: each task is given one CPU (bind: cpu)"});
    placement.bind = policy::Bind::cpu;
    return placement;
}

std::vector<Slot> distribute(Run& run, const Policy& policy, const policy::Placement& wanted,
                             const CpuSet& allowed, const CpuSet& own_nics) {
    const auto placement = for_isolated(run, policy, wanted, allowed);
    CpuSet near;
    if (placement.near) near = evaluated(run, policy, *placement.near, own_nics).value_or(CpuSet{});
    return make_slots(run.machine.topology, placement, allowed, near);
}

CpuSet together_level(const Run& run, const Policy& policy, unsigned cpu) {
    const auto& topology = run.machine.topology;
    switch (policy.together) {
    case policy::Together::core:
        return topology.core_of(cpu);
    case policy::Together::llc:
        return topology.llc_of(cpu);
    case policy::Together::node:
        return topology.node_cpus_of(cpu);
    case policy::Together::socket:
        return topology.package_of(cpu);
    default:
        return run.result.online;
    }
}

void add_together(Run& run, ResolvedPolicy& resolved, const CpuSet& own_nics) {
    if (resolved.policy->together == policy::Together::none) return;
    CpuSet rest = resolved.allowed;
    while (!rest.empty()) {
        CpuSet group = together_level(run, *resolved.policy, rest.first()) & rest;
        if (group.empty()) group = rest;
        rest -= group;
        auto slots = distribute(run, *resolved.policy, resolved.policy->placement, group, own_nics);
        resolved.together.push_back({std::move(group), std::move(slots)});
    }
}

void add_distributions(Run& run, ResolvedPolicy& resolved, const CpuSet& own_nics) {
    const Policy& policy = *resolved.policy;
    resolved.distributions.push_back(distribute(run, policy, policy.placement, resolved.allowed, own_nics));
    for (const auto& rule : policy.threads) {
        auto allowed = allowed_cpus(run, policy, rule.placement, own_nics);
        // A rule that states no CPUs, or none that are here, gets the policy's.
        if (!allowed || !rule.placement.cpus) allowed = resolved.allowed;
        if (!policy.exclusive) *allowed -= run.result.claimed;
        if (allowed->empty()) allowed = resolved.allowed;
        resolved.distributions.push_back(distribute(run, policy, rule.placement, *allowed, own_nics));
    }
}

CpuSet own_nic_cpus(const Run& run, const NicNames& nics) {
    CpuSet cpus;
    for (const auto& name : nics)
        if (const auto found = run.near.find(name); found != run.near.end()) cpus |= found->second;
    return cpus.empty() ? run.result.online : cpus;
}

/// Finds the CPUs that a policy may use, and claims them if it is exclusive.
void find_allowed(Run& run, ResolvedPolicy& resolved, const CpuSet& own_nics) {
    const Policy& policy = *resolved.policy;
    if (policy.model == policy::Model::none) return;
    auto allowed = allowed_cpus(run, policy, policy.placement, own_nics);
    if (!allowed) return;
    const CpuSet taken = *allowed & run.result.claimed;
    *allowed -= taken;
    if (allowed->empty()) {
        run.result.problems.push_back(
            {policy.name, taken.to_list(), "all its CPUs are claimed by policies with exclusive: true"});
        return;
    }
    resolved.allowed = std::move(*allowed);
    resolved.active = true;
    if (policy.exclusive) run.result.claimed |= resolved.allowed;
}

/// Counts the lanes that policies had before, so that nobody takes what a later one is about to keep; or,
/// with `is_over`, takes back those that nobody has kept.
void count_kept(const Placements& before, const Placements& now, bool is_over, CpuLoad& load) {
    for (const auto& resolved : now.policies) {
        const auto* old = resolved.active ? before.find(resolved.policy->name) : nullptr;
        if (old == nullptr) continue;
        for (const auto& lanes : old->nics) {
            if (is_over &&
                std::ranges::find(resolved.nics, lanes.nics, &NicLanes::nics) != resolved.nics.end())
                continue;
            for (const auto& lane : lanes.lanes)
                load.add({lane.cpus.first()}, is_over ? -one_cpu : one_cpu);
        }
    }
}

} // namespace

const ResolvedPolicy* Placements::find(std::string_view policy) const {
    const auto found = std::ranges::find_if(policies, [&](const ResolvedPolicy& resolved) {
        return resolved.policy != nullptr && resolved.policy->name == policy;
    });
    return found == policies.end() ? nullptr : &*found;
}

const NicLanes* ResolvedPolicy::nic(std::string_view name) const {
    const auto found = std::ranges::find_if(
        nics, [&](const NicLanes& lanes) { return std::ranges::find(lanes.nics, name) != lanes.nics.end(); });
    return found == nics.end() ? nullptr : &*found;
}

const NicLanes* ResolvedPolicy::lanes(std::string_view name) const {
    const auto found = std::ranges::find(nics, name, &NicLanes::name);
    return found == nics.end() ? nullptr : &*found;
}

NicNames policy_nics(const Policy& policy, const Machine& machine, const NicUsage& usage) {
    return Interfaces(machine).of(policy, usage);
}

Placements compile(const PolicySet& policies, const Machine& machine, const NicUsage& usage,
                   const Placements* before) {
    Run run{policies, machine, usage, machine::nic_cpus(machine), {}};
    run.result.online = machine.topology.online;
    run.result.policies.resize(policies.policies.size());
    const Interfaces interfaces(machine);
    std::vector<NicNames> nics;
    for (std::size_t i = 0; i < policies.policies.size(); ++i) {
        run.result.policies[i].policy = &policies.policies[i];
        nics.push_back(interfaces.of(policies.policies[i], usage));
    }
    // Exclusive policies come first, so that no other is given CPUs that a later one claims.
    for (const bool exclusive : {true, false})
        for (std::size_t i = 0; i < policies.policies.size(); ++i)
            if (policies.policies[i].exclusive == exclusive)
                find_allowed(run, run.result.policies[i], own_nic_cpus(run, nics[i]));
    LaneLoad load{CpuLoad(machine.topology), CpuLoad(machine.topology), CpuLoad(machine.topology)};
    for (const auto& resolved : run.result.policies)
        if (resolved.active && resolved.policy->model != policy::Model::none &&
            resolved.policy->model != policy::Model::irq)
            load.expected.add(resolved.allowed, one_cpu);
    if (before != nullptr) count_kept(*before, run.result, false, load.expected);
    const auto add_all = [&](std::size_t i) {
        ResolvedPolicy& resolved = run.result.policies[i];
        const CpuSet own = own_nic_cpus(run, nics[i]);
        add_distributions(run, resolved, own);
        add_together(run, resolved, own);
        add_lanes(resolved, interfaces, nics[i], usage, load, run.result,
                  before == nullptr ? nullptr : before->find(resolved.policy->name));
    };
    // An interface that one policy names and another one only finds by its sockets is that of the first.
    for (const bool is_auto : {false, true})
        for (std::size_t i = 0; i < policies.policies.size(); ++i)
            if (run.result.policies[i].active && policies.policies[i].nics_auto == is_auto) add_all(i);
    settle_shared_lines(machine, run.result);
    if (before != nullptr) count_kept(*before, run.result, true, load.expected);
    run.result.busiest = load.expected.busiest();
    for (const unsigned cpu : machine.topology.online)
        run.result.average += load.expected.on_cpu(cpu);
    run.result.average /= static_cast<Weight>(std::max<std::size_t>(1, machine.topology.cores.size()));
    run.result.load = std::make_shared<const CpuLoad>(std::move(load.interrupts));
    return std::move(run.result);
}

Placements recompile(const PolicySet& policies, const Machine& machine, const NicUsage& usage,
                     const Placements& before) {
    constexpr Weight much = one_cpu / 2;
    auto kept = compile(policies, machine, usage, &before);
    if (kept.busiest <= kept.average + much) return kept; // no other could be much better
    auto fresh = compile(policies, machine, usage);
    return fresh.busiest + much < kept.busiest ? std::move(fresh) : std::move(kept);
}

} // namespace affinityd::planner
