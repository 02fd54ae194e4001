// SPDX-License-Identifier: Apache-2.0
#include "planner/place.hpp"

#include "planner/matcher.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

using policy::Model;

struct Choice {
    DealId deal;
    const std::vector<Slot>* slots;
};

/// The lanes a task belongs to: those of the one interface that serves its process, else of all the policy's.
Choice lanes_of(const Compiled& compiled, const Unit& unit) {
    DealId deal{compiled.policy->name, 0, "*"};
    if (compiled.nics.size() == 1)
        return {{deal.policy, 0, compiled.nics.front().nic}, &compiled.nics.front().lanes};
    if (unit.nics != nullptr) {
        const NicDeal* only = nullptr;
        std::size_t found = 0;
        for (const auto& name : *unit.nics)
            if (const auto* nic = compiled.nic(name)) {
                only = nic;
                ++found;
            }
        if (found == 1) return {{deal.policy, 0, only->nic}, &only->lanes};
    }
    return {deal, &compiled.all_lanes};
}

Choice group_of(const Compiled& compiled, Assignments& assignments, const Unit& unit) {
    std::vector<Slot> groups;
    for (const auto& [cpus, slots] : compiled.together)
        groups.push_back({cpus, cpus});
    const DealId deal{compiled.policy->name, 0, "together"};
    const auto group = assignments.seat(deal, groups, unit.process, unit.thread->allowed);
    return {{compiled.policy->name, 0, "together:" + std::to_string(groups[group].home.first())},
            &compiled.together[group].second};
}

bool is_within(const std::vector<Slot>& slots, const CpuSet& cpuset) {
    return std::ranges::all_of(slots, [&](const Slot& slot) { return cpuset.contains(slot.mask); });
}

/// Seats that a cpuset leaves, cut to it: the kernel would cut the mask, or refuse it if nothing were left.
std::vector<Slot> reachable_slots(const std::vector<Slot>& slots, const CpuSet& cpuset) {
    std::vector<Slot> rest;
    for (const auto& slot : slots)
        if (slot.home.intersects(cpuset)) rest.push_back({slot.home & cpuset, slot.mask & cpuset});
    return rest;
}

const char* bind_name(policy::Bind bind) {
    constexpr const char* names[] = {"CPU", "core", "cache group", "NUMA node", "whole set"};
    return names[static_cast<std::size_t>(bind)];
}

} // namespace

bool deals_threads(const policy::Placement& placement) { return placement.spread != policy::Spread::any; }

std::expected<Target, NoPlace> place(const Placements& placements, Assignments& assignments,
                                     std::size_t policy, const Unit& unit) {
    const Compiled& compiled = placements.policies[policy];
    if (!compiled.active || compiled.policy->model == Model::irq) return std::unexpected(NoPlace::left_alone);
    const auto rule = Matcher::thread_rule(*compiled.policy, unit.thread->comm, unit.index);
    if (rule && compiled.policy->threads[*rule].leave) return std::unexpected(NoPlace::left_alone);

    const unsigned number = rule ? static_cast<unsigned>(*rule) + 1 : 0;
    const auto& placement = rule ? compiled.policy->threads[*rule].placement : compiled.policy->placement;
    Choice choice{{compiled.policy->name, number, ""}, &compiled.deals[number]};
    const bool own_cpus = rule && placement.cpus != compiled.policy->placement.cpus;
    if (!own_cpus && !compiled.all_lanes.empty())
        choice = lanes_of(compiled, unit);
    else if (!own_cpus && !compiled.together.empty())
        choice = group_of(compiled, assignments, unit);

    const TaskId seated = deals_threads(placement) ? unit.thread->id : unit.process;
    std::vector<Slot> reachable;
    if (unit.cpuset != nullptr && !is_within(*choice.slots, *unit.cpuset)) {
        reachable = reachable_slots(*choice.slots, *unit.cpuset);
        if (reachable.empty()) return std::unexpected(NoPlace::outside);
        choice.slots = &reachable;
    }
    const Slot& slot =
        (*choice.slots)[assignments.seat(choice.deal, *choice.slots, seated, unit.thread->allowed)];
    return Target{slot.mask, policy, std::move(choice.deal), slot.home};
}

std::string reason_of(const Placements& placements, const Target& target) {
    const auto& policy = *placements.policies[target.policy].policy;
    const auto& placement =
        target.deal.rule == 0 ? policy.placement : policy.threads[target.deal.rule - 1].placement;
    std::string text = "policy " + policy.name;
    if (target.deal.rule > 0) text += fmt::format(", thread rule {}", target.deal.rule);
    if (target.deal.nic.starts_with("together:"))
        text += ", kept together with its process";
    else if (target.deal.nic == "*")
        text += ", a lane of its interfaces";
    else if (!target.deal.nic.empty())
        text += ", the lane of " + target.deal.nic;
    return text + fmt::format(": seat {}, bound to its {}", target.home.to_list(), bind_name(placement.bind));
}

} // namespace affinityd::planner
