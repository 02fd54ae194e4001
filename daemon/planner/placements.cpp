// SPDX-License-Identifier: Apache-2.0
#include "planner/placements.hpp"

#include "planner/lanes.hpp"
#include "planner/slots.hpp"

#include <algorithm>
#include <functional>
#include <ranges>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

using machine::Machine;
using policy::Policy;
using policy::PolicySet;

/// Shared by the steps of one compile().
struct Run {
    const PolicySet& policies;
    const Machine& machine;
    const NicUsage& usage;
    const Released& released;
    std::map<std::string, CpuSet, std::less<>> near;
    Placements result;
};

/// The command that shows what an expression stands for.
std::string evaluation_of(const policy::CpuExpr& expr) {
    return "affinityctl cpus '" + policy::to_string(expr) + "'";
}

std::optional<CpuSet> evaluated(Run& run, const Policy& policy, const policy::CpuExpr& expr,
                                const CpuSet& own_nics) {
    auto cpus = evaluate(expr, run.machine.topology, run.near, own_nics);
    if (cpus) return *cpus & run.result.online;
    run.result.problems.push_back(
        {policy.name, policy::to_string(expr),
         cpus.error().message + (cpus.error().hint.empty() ? "" : " (" + cpus.error().hint + ")"),
         evaluation_of(expr)});
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
    run.result.problems.push_back({policy.name, "cpus " + policy::to_string(*placement.cpus),
                                   "no online CPU is left of this set", evaluation_of(*placement.cpus)});
    return std::nullopt;
}

/// Takes away CPUs that others have claimed. Reports it if the policy names them, or none is left.
void leave_out_claimed(Run& run, const Policy& policy, const policy::Placement& placement,
                       const std::string& of, CpuSet& allowed) {
    const auto taken = run.result.kept_off(allowed & run.result.claimed);
    allowed -= taken.cpus;
    if (taken.cpus.empty() || (!placement.cpus && !allowed.empty())) return;
    const auto named = [](const CpuSet& cpus) {
        return fmt::format("CPU{} {} {}", cpus.count() == 1 ? "" : "s", cpus.to_list(),
                           cpus.count() == 1 ? "is" : "are");
    };
    run.result.problems.push_back(
        {policy.name, "cpus " + (placement.cpus ? policy::to_string(*placement.cpus) : taken.cpus.to_list()),
         fmt::format("{}{}, as {} reserved for {} (exclusive)", of,
                     allowed.empty() ? "no CPU is left" : "only " + named(allowed) + " used",
                     named(taken.cpus), fmt::join(taken.by, ", ")),
         allowed.empty() || !placement.cpus
             ? fmt::format("name other CPUs in cpus of {}.yaml", policy.name)
             : fmt::format("write cpus: {} in {}.yaml, which is what it uses now", allowed.to_list(),
                           policy.name)});
}

/// A task is given one isolated CPU, or none (make_slots()): it may be less than its policy asks for.
void tell_of_isolated(Run& run, const Policy& policy, const policy::Placement& placement,
                      const CpuSet& allowed) {
    const auto& topology = run.machine.topology;
    if (!parts_isolated(topology, placement.bind, allowed)) return;
    run.result.problems.push_back(
        {policy.name, (allowed & topology.isolated).to_list(),
         "these CPUs are isolated and not load-balanced: each task is given one CPU of them (bind: cpu)" +
             std::string(topology.isolated.contains(allowed) ? "" : ", or only others"),
         "name in cpus only as many as it has tasks, or none of them"});
}

std::vector<Slot> distribute(Run& run, const Policy& policy, const policy::Placement& placement,
                             const CpuSet& allowed, const CpuSet& own_nics) {
    CpuSet near;
    if (placement.near) near = evaluated(run, policy, *placement.near, own_nics).value_or(CpuSet{});
    return make_slots(run.machine.topology, placement, allowed, near);
}

/// Where nothing can be steered, workers on single cores would read few packets where they arrive; the
/// scheduler may follow these inside the cache group.
policy::Placement widened(const Run& run, const Policy& policy, policy::Placement placement) {
    using policy::Bind, policy::Steer;
    const bool needs_steering = policy.model == policy::Model::full &&
                                (policy.steer == Steer::automatic || policy.steer == Steer::accept);
    if (needs_steering && run.machine.unsteered.contains(policy.name) && placement.bind == Bind::core)
        placement.bind = Bind::llc;
    return placement;
}

void add_together(Run& run, ResolvedPolicy& resolved, const CpuSet& own_nics) {
    using policy::Bind, policy::Together;
    const auto& topology = run.machine.topology;
    const auto together = resolved.policy->together;
    std::vector<CpuSet> groups;
    if (together == Together::none) return;
    if (together == Together::measured)
        groups = cut_groups(run.result.measured->groups, resolved.allowed);
    else if (together == Together::socket)
        groups = cut_groups(topology.packages, resolved.allowed);
    else
        groups = groups_of(topology,
                           together == Together::core  ? Bind::core
                           : together == Together::llc ? Bind::llc
                                                       : Bind::node,
                           resolved.allowed);
    for (auto& group : groups) {
        std::vector<std::vector<Slot>> slots{
            distribute(run, *resolved.policy, resolved.placement, group, own_nics)};
        for (const auto& rule : resolved.policy->threads)
            slots.push_back(distribute(run, *resolved.policy, widened(run, *resolved.policy, rule.placement),
                                       group, own_nics));
        resolved.together.push_back({std::move(group), std::move(slots)});
    }
}

void add_distributions(Run& run, ResolvedPolicy& resolved, const CpuSet& own_nics) {
    const Policy& policy = *resolved.policy;
    resolved.placement = widened(run, policy, policy.placement);
    resolved.placements = {resolved.placement};
    if (resolved.placement.bind != policy.placement.bind)
        run.result.problems.push_back(
            {policy.name, "bind", "nothing can be steered here: bind: core is widened to the cache group",
             "leave bind out, or keep it with steer: none"});
    tell_of_isolated(run, policy, policy.placement, resolved.allowed);
    resolved.distributions.push_back(distribute(run, policy, resolved.placement, resolved.allowed, own_nics));
    for (const auto& slot : resolved.distributions.front())
        resolved.usable |= slot.mask;
    if (policy.model == policy::Model::full)
        resolved.caches = groups_of(run.machine.topology, policy::Bind::llc,
                                    resolved.usable - run.machine.topology.isolated);
    for (const auto& rule : policy.threads) {
        auto allowed = allowed_cpus(run, policy, rule.placement, own_nics);
        // A rule that states no CPUs, or none that are here, gets the policy's.
        if (!allowed || !rule.placement.cpus)
            allowed = resolved.allowed;
        else if (policy.exclusive == policy::Exclusive::no)
            leave_out_claimed(run, policy, rule.placement,
                              fmt::format("thread rule {}: ", resolved.distributions.size()), *allowed);
        if (allowed->empty()) allowed = resolved.allowed;
        tell_of_isolated(run, policy, rule.placement, *allowed);
        resolved.placements.push_back(widened(run, policy, rule.placement));
        resolved.distributions.push_back(
            distribute(run, policy, resolved.placements.back(), *allowed, own_nics));
    }
}

CpuSet own_nic_cpus(const Run& run, const NicNames& nics) {
    CpuSet cpus;
    for (const auto& name : nics)
        if (const auto found = run.near.find(name); found != run.near.end()) cpus |= found->second;
    return cpus.empty() ? run.result.online : cpus;
}

/// The CPUs that `rps` names; empty, and a problem, where that is nothing here.
CpuSet rps_cpus(Run& run, const Policy& policy, const CpuSet& own_nics) {
    if (!policy.rps) return {};
    auto cpus = evaluated(run, policy, *policy.rps, own_nics);
    if (!cpus || !cpus->empty()) return cpus.value_or(CpuSet());
    run.result.problems.push_back({policy.name, "rps " + policy::to_string(*policy.rps),
                                   "no online CPU is left of this set: readers get the packets",
                                   evaluation_of(*policy.rps)});
    return {};
}

/// Finds the CPUs that a policy may use, and claims them if it is exclusive.
void find_allowed(Run& run, ResolvedPolicy& resolved, const CpuSet& own_nics) {
    const Policy& policy = *resolved.policy;
    if (policy.model == policy::Model::none) return;
    auto allowed = allowed_cpus(run, policy, policy.placement, own_nics);
    if (!allowed) return;
    leave_out_claimed(run, policy, policy.placement, "", *allowed);
    if (allowed->empty()) return;
    resolved.allowed = std::move(*allowed);
    resolved.active = true;
    if (policy.exclusive == policy::Exclusive::no || run.released.contains(policy.name)) return;
    run.result.claimed |= resolved.allowed;
    if (policy.isolate) run.result.isolated |= resolved.allowed;
    run.result.claims.push_back({policy.name, resolved.allowed});
}

/// The load before any policy has lanes: the tasks of policies, each spread over the CPUs it may use, and
/// what is about to be kept.
LaneLoad first_load(const Run& run, const std::vector<std::vector<Interfaces::Group>>& groups,
                    const Placements* before) {
    const CpuLoad none(run.machine.topology);
    LaneLoad load{.interrupts = none, .readers = none, .dealt = none, .expected = none};
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto& resolved = run.result.policies[i];
        if (!resolved.active) continue;
        const auto model = resolved.policy->model;
        if (model != policy::Model::none && model != policy::Model::irq)
            load.expected.add(resolved.allowed, one_cpu);
        const auto* earlier = before == nullptr ? nullptr : before->find(resolved.policy->name);
        for (const auto& group : groups[i])
            if (const auto* lanes = earlier_lanes(group, earlier)) load.add_kept(*lanes);
    }
    return load;
}

/// The interrupts that a policy names go where the lane rule has queues without readers. Policies place
/// queues of NICs first: an interrupt that is placed stays there.
void add_named_irqs(Run& run, const ResolvedPolicy& resolved, LaneLoad& load) {
    const Policy& policy = *resolved.policy;
    if (policy.irqs.empty() || policy.model == policy::Model::none) return;
    const auto is_named = [&](const std::string& name) {
        return std::ranges::any_of(policy.irqs, [&](const auto& pattern) { return pattern.matches(name); });
    };
    std::vector<const irq::Irq*> lines;
    bool is_found = false;
    for (const auto& line : run.machine.irqs.irqs) {
        if (line.actions.empty() || !line.requested || !line.writable ||
            !(std::ranges::any_of(line.actions, is_named) || (!line.pci.empty() && is_named(line.pci))))
            continue;
        is_found = true;
        const auto placed = std::ranges::find_if(run.result.queues, [&](const QueueTarget& target) {
            const auto* irq = std::get_if<IrqMask>(&target.subject);
            return irq != nullptr && irq->irq == line.number;
        });
        if (placed == run.result.queues.end())
            lines.push_back(&line);
        else if (placed->policy != policy.name)
            run.result.problems.push_back({policy.name, fmt::format("IRQ {}", line.number),
                                           "it is already placed by policy " + placed->policy,
                                           "leave it out of one of the two policies"});
    }
    std::ranges::sort(lines, {}, &irq::Irq::number);
    if (!is_found)
        run.result.problems.push_back(
            {policy.name, "irqs", "no interrupt has such a name now", "affinityctl irqs"});
    if (lines.empty()) return;
    const auto lanes = deal_lanes({.resolved = resolved,
                                   .topology = run.machine.topology,
                                   .nics = {{.name = "irqs",
                                             .id = {},
                                             .near = run.result.online,
                                             .takes = std::vector<bool>(lines.size(), true)}},
                                   .readers = {}},
                                  load);
    const auto subjects = machine::named_irqs(run.machine);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const CpuSet wanted{lanes.queues[0][i].cpu};
        const auto reason = "policy " + policy.name + ", irqs: on one of its cores";
        run.result.queues.push_back({subjects.at(lines[i]->number), wanted, "", policy.name, reason});
        for (const int thread : lines[i]->threads)
            run.result.threads.insert_or_assign(thread, QueueThread{wanted, policy.name, reason});
    }
}

bool says_measured(const Policy& policy) {
    return policy.together == policy::Together::measured || policy.placement.near_measured ||
           std::ranges::any_of(policy.threads,
                               [](const auto& rule) { return !rule.leave && rule.placement.near_measured; });
}

void find_measured(Run& run) {
    if (std::ranges::none_of(run.policies.policies, says_measured)) return;
    const auto& [level, unused, time] = run.machine.latencies;
    const auto& topology = run.machine.topology;
    run.result.measured = {topology.measured.empty() ? topology.llc_groups() : topology.measured,
                           level ? level->ns : 0, !unused.empty()};
    for (const auto& policy : run.policies.policies)
        if (!unused.empty() && says_measured(policy))
            run.result.problems.push_back({policy.name, "measured",
                                           unused + ": the cache groups count instead",
                                           "affinityctl measure latency"});
}

} // namespace

const ResolvedPolicy* Placements::find(std::string_view policy) const {
    const auto found = std::ranges::find_if(policies, [&](const ResolvedPolicy& resolved) {
        return resolved.policy != nullptr && resolved.policy->name == policy;
    });
    return found == policies.end() ? nullptr : &*found;
}

KeptOff Placements::kept_off(const CpuSet& cpus) const {
    KeptOff kept{cpus, {}};
    for (const auto& claim : claims)
        if (claim.cpus.intersects(cpus)) kept.by.push_back(claim.policy);
    return kept;
}

std::size_t NicLanes::seats() const {
    std::size_t sum = 0;
    for (const auto& row : rows)
        sum += row.is_open ? 0 : row.slots.size();
    return sum;
}

std::vector<CpuSet> NicLanes::cores() const {
    std::vector<CpuSet> found;
    const auto add = [&](const CpuSet& cpus) {
        if (std::ranges::find(found, cpus) == found.end()) found.push_back(cpus);
    };
    for (const auto& row : rows)
        for (const auto& slot : row.slots)
            if (!row.is_open) add(slot.cpus);
    for (const auto& nic : queues)
        for (const auto& queue : nic)
            if (seats() == 0) add(queue.seat);
    return found;
}

const SeatRow* NicLanes::row(unsigned rule, const NicNames* nics_of_reader, const CpuSet& may) const {
    const auto reads_same = [&](const SeatRow& row) {
        if (nics_of_reader == nullptr || nics_of_reader->empty()) return row.nics == nics;
        return std::ranges::all_of(nics, [&](const std::string& nic) {
            const bool reads = std::ranges::find(*nics_of_reader, nic) != nics_of_reader->end();
            return reads == (std::ranges::find(row.nics, nic) != row.nics.end());
        });
    };
    const SeatRow* best = nullptr;
    int most = 0;
    for (const auto& row : rows) {
        if (row.rule != rule || (!row.is_open && row.may != may)) continue;
        const int score = row.is_open ? 1 : reads_same(row) ? 3 : 2;
        if (score > most) best = &row, most = score;
    }
    return best;
}

const NicLanes* ResolvedPolicy::nic(std::string_view name) const {
    const auto found = std::ranges::find_if(
        nics, [&](const NicLanes& lanes) { return std::ranges::find(lanes.nics, name) != lanes.nics.end(); });
    return found == nics.end() ? nullptr : &*found;
}

const SeatRow* ResolvedPolicy::row(std::string_view name) const {
    for (const auto& lanes : nics)
        for (const auto& row : lanes.rows)
            if (row.name == name) return &row;
    return nullptr;
}

bool ResolvedPolicy::reads(unsigned rule) const {
    if (rule >= placements.size()) return false; // counted under an earlier text of the policy
    const auto& its = placements[rule];
    if (policy->model != policy::Model::full || its.bind == policy::Bind::set || its.smt == policy::Smt::pair)
        return false;
    if (rule == 0) return true;
    const auto& of_thread = policy->threads[rule - 1];
    return !of_thread.leave && of_thread.placement.cpus == policy->placement.cpus;
}

NicNames policy_nics(const Policy& policy, const Machine& machine, const NicUsage& usage) {
    return Interfaces(machine).of(policy, usage);
}

Placements compile(const PolicySet& policies, const Machine& machine, const NicUsage& usage,
                   const Placements* before, const Released& released) {
    Run run{policies, machine, usage, released, machine::nic_cpus(machine), {}};
    run.result.online = machine.topology.online;
    run.result.balanced = machine.topology.online - machine.topology.isolated;
    run.result.policies.resize(policies.policies.size());
    find_measured(run);
    const Interfaces interfaces(machine);
    std::vector<NicNames> nics;
    for (std::size_t i = 0; i < policies.policies.size(); ++i) {
        run.result.policies[i].policy = &policies.policies[i];
        nics.push_back(interfaces.of(policies.policies[i], usage));
    }
    // Exclusive policies come first, so that no other is given CPUs that a later one claims.
    for (const bool exclusive : {true, false})
        for (std::size_t i = 0; i < policies.policies.size(); ++i)
            if ((policies.policies[i].exclusive != policy::Exclusive::no) == exclusive)
                find_allowed(run, run.result.policies[i], own_nic_cpus(run, nics[i]));
    std::vector<std::vector<Interfaces::Group>> groups(nics.size());
    const auto has_lanes = [&](std::size_t i) {
        const auto model = policies.policies[i].model;
        return run.result.policies[i].active && (model == policy::Model::irq || model == policy::Model::full);
    };
    for (std::size_t i = 0; i < nics.size(); ++i)
        if (has_lanes(i)) groups[i] = interfaces.together(nics[i], policies.policies[i], usage);
    LaneLoad load = first_load(run, groups, before);
    const auto add_all = [&](std::size_t i) {
        ResolvedPolicy& resolved = run.result.policies[i];
        const CpuSet own = own_nic_cpus(run, nics[i]);
        add_distributions(run, resolved, own);
        add_together(run, resolved, own);
        resolved.rps = rps_cpus(run, policies.policies[i], own);
        for (const auto& rule : policies.policies[i].threads)
            resolved.rule_nics.push_back(interfaces.called(rule.nics));
        if (has_lanes(i))
            add_lanes(resolved, interfaces, groups[i],
                      before == nullptr ? nullptr : before->find(resolved.policy->name), load, run.result);
        if (has_lanes(i) && resolved.policy->model == policy::Model::full)
            add_ends(resolved, machine, usage, load, run.result);
    };
    // An interface that one policy names and another one only finds by its sockets is that of the first.
    for (const bool is_auto : {false, true})
        for (std::size_t i = 0; i < policies.policies.size(); ++i)
            if (run.result.policies[i].active && policies.policies[i].nics_auto == is_auto) add_all(i);
    for (const auto& resolved : run.result.policies)
        if (resolved.active) add_named_irqs(run, resolved, load);
    for (const auto& found : machine.label_findings)
        run.result.problems.push_back({"",
                                       fmt::format("{}:{}:{}", found.at.file, found.at.line, found.at.column),
                                       found.message, found.hint});
    tell_of_mixed(machine.topology, run.result);
    settle_shared_lines(machine, run.result);
    keep_off_isolated(machine, run.result);
    run.result.number = before == nullptr ? 0 : before->number + 1;
    run.result.load = std::make_shared<const CpuLoad>(std::move(load.interrupts));
    return std::move(run.result);
}

bool restricts_nothing(const ResolvedPolicy& resolved, const CpuSet& online) {
    const auto are_everything = [&](const std::vector<std::vector<Slot>>& distributions) {
        return std::ranges::all_of(distributions | std::views::join,
                                   [&](const Slot& slot) { return slot.mask.contains(online); });
    };
    return resolved.active && resolved.nics.empty() && are_everything(resolved.distributions) &&
           std::ranges::all_of(resolved.together, are_everything, &Group::distributions);
}

} // namespace affinityd::planner
