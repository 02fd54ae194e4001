// SPDX-License-Identifier: Apache-2.0
#include "planner/place.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

using policy::Model;

struct Choice {
    DistributionId distribution;
    const std::vector<Slot>* slots;
    bool are_lanes = false;
    bool is_cut = false; ///< the process's cpuset leaves it less than that
};

using Kind = DistributionId::Kind;

/// The name of the slots inside a group.
DistributionId in_group(const std::string& policy, unsigned rule, const CpuSet& group) {
    return {policy, rule, std::to_string(group.first()), Kind::in_group};
}

/// The seats for a reader: those of the interfaces that serve its process, else of all the policy's. No
/// value: it is none, or there are none for it.
std::optional<Choice> seats_of(const ResolvedPolicy& resolved, const ProcessView& process, unsigned rule) {
    if (resolved.nics.empty() || process.is_elsewhere || process.reads_nothing || !resolved.reads(rule))
        return std::nullopt;
    const auto* nics =
        rule > 0 && !resolved.rule_nics[rule - 1].empty() ? &resolved.rule_nics[rule - 1] : process.nics;
    std::set<const NicLanes*> serving;
    if (nics != nullptr)
        for (const auto& name : *nics)
            if (const auto* lanes = resolved.nic(name)) serving.insert(lanes);
    if (resolved.nics.size() == 1) serving = {&resolved.nics.front()};
    if (serving.size() == 1) {
        const auto may = process.cpuset == nullptr ? resolved.allowed : resolved.allowed & *process.cpuset;
        const auto* row = (*serving.begin())->row(rule, nics, may);
        if (row == nullptr) return std::nullopt;
        return Choice{{resolved.policy->name, rule, row->name, Kind::lanes}, &row->slots, true};
    }
    return Choice{{resolved.policy->name, rule, "", Kind::all_lanes}, &resolved.all_seats[rule], true};
}

const std::function<CpuSet()>* cramped_for(const ResolvedPolicy& resolved, const ProcessView& process) {
    return resolved.policy->placement.near_room ? process.cramped : nullptr;
}

/// The slots inside the group that the whole process stays in; none if its cpuset has no CPU of any group.
Choice group_of(const ResolvedPolicy& resolved, Assignments& assignments, const ProcessView& process,
                const ThreadView& thread, unsigned rule) {
    static const std::vector<Slot> none;
    std::vector<Slot> groups;
    std::vector<const Group*> reachable;
    bool is_cut = false;
    const auto room = [&](const Group& group) {
        return process.cpuset == nullptr ? group.cpus.count() : (group.cpus & *process.cpuset).count();
    };
    std::size_t most = 1; // a group that has less than half of that has no room
    for (const auto& group : resolved.together)
        if (process.cpuset != nullptr) most = std::max(most, room(group));
    for (const auto& group : resolved.together) {
        is_cut = is_cut || (process.cpuset != nullptr && !process.cpuset->contains(group.cpus));
        if (2 * room(group) < most) continue;
        groups.push_back({group.cpus, group.cpus});
        reachable.push_back(&group);
    }
    const auto& name = resolved.policy->name;
    const DistributionId together{name, 0, "", Kind::groups};
    if (groups.empty()) return {together, &none};
    const auto chosen = assignments.assign({.distribution = together,
                                            .slots = groups,
                                            .task = process.id,
                                            .present = thread.thread.allowed,
                                            .cpuset = is_cut ? process.cpuset : nullptr,
                                            .cramped = cramped_for(resolved, process)});
    return {in_group(name, rule, groups[chosen].cpus), &reachable[chosen]->distributions[rule], false,
            is_cut};
}

Choice choose(const ResolvedPolicy& resolved, Assignments& assignments, const ProcessView& process,
              const ThreadView& thread, std::optional<std::size_t> rule) {
    const auto& policy = *resolved.policy;
    const bool own_cpus = rule && policy.threads[*rule].placement.cpus != policy.placement.cpus;
    const unsigned number = rule ? static_cast<unsigned>(*rule) + 1 : 0;
    if (auto seats = seats_of(resolved, process, number)) return std::move(*seats);
    if (!own_cpus && !resolved.together.empty())
        return group_of(resolved, assignments, process, thread, number);
    return {{policy.name, number, ""}, &resolved.distributions[number]};
}

/// True if there are slots, and the cpuset leaves each of them whole.
bool is_within(const std::vector<Slot>& slots, const CpuSet& cpuset) {
    return !slots.empty() &&
           std::ranges::all_of(slots, [&](const Slot& slot) { return cpuset.contains(slot.mask); });
}

/// Where all threads of a process may run until it has settled: a program that counts its CPUs when it starts
/// counts those of its policy, as it would in a cpuset.
std::expected<Target, NoPlace> whole_of(const ResolvedPolicy& resolved, const ProcessView& process) {
    const CpuSet cpus = process.cpuset == nullptr ? resolved.usable : resolved.usable & *process.cpuset;
    if (cpus.empty()) return std::unexpected(NoPlace::outside);
    return Target{cpus,       *process.policy, {resolved.policy->name, 0, "", Kind::whole},
                  process.id, false,           cpus};
}

/// Seats are there once it is known which interface brings a reader its packets. Until then none is bound
/// more closely than to its cache group, where the scheduler can follow them.
bool is_unserved(const ResolvedPolicy& resolved, const ProcessView& process, unsigned rule) {
    return (resolved.nics.empty() || process.is_elsewhere) && !process.reads_nothing && resolved.reads(rule);
}

/// The first number in a name, such as 3 of "CPU 3/KVM"; no value: it has none.
std::optional<unsigned> number_in(std::string_view name) {
    constexpr std::string_view digits = "0123456789";
    const auto from = std::min(name.find_first_of(digits), name.size());
    return parse_number<unsigned>(
        name.substr(from, std::min(name.find_first_not_of(digits, from), name.size()) - from));
}

std::string how_near(const MeasuredLevel& level) {
    if (level.ns > 0) return fmt::format("measured latency, {:.1f} ns", level.ns);
    return level.is_foreign ? "topology, as latencies were measured on another machine"
                            : "topology, as no latencies were measured here";
}

} // namespace

bool distributes_threads(const policy::Placement& placement) {
    return placement.spread != policy::Spread::any;
}

CpuSet cramped(const topology::Topology& topology, const std::vector<std::optional<std::uint64_t>>& room,
               std::uint64_t resident) {
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < room.size(); ++i)
        if (!topology.nodes[i].cpus.empty()) most = std::max(most, room[i].value_or(0));
    CpuSet cpus;
    for (std::size_t i = 0; i < room.size(); ++i)
        if (room[i] && (*room[i] < most / 2 || (*room[i] < resident && resident <= most)))
            cpus |= topology.nodes[i].cpus;
    return cpus;
}

const std::vector<Slot>* slots_of(const Placements& placements, const DistributionId& distribution) {
    const auto* resolved = placements.find(distribution.policy);
    if (resolved == nullptr || !resolved->active) return nullptr;
    switch (distribution.kind) {
    case Kind::slots:
        if (distribution.rule < resolved->distributions.size())
            return &resolved->distributions[distribution.rule];
        break;
    case Kind::lanes:
        if (const auto* row = resolved->row(distribution.among)) return &row->slots;
        break;
    case Kind::all_lanes:
        if (distribution.rule < resolved->all_seats.size()) return &resolved->all_seats[distribution.rule];
        break;
    case Kind::in_group:
        for (const auto& group : resolved->together)
            if (distribution.rule < group.distributions.size() &&
                distribution == in_group(distribution.policy, distribution.rule, group.cpus))
                return &group.distributions[distribution.rule];
        break;
    case Kind::groups:
    case Kind::whole:
        break; // these are not slots
    }
    return nullptr;
}

std::expected<Target, NoPlace> place(const Placements& placements, Assignments& assignments,
                                     const ProcessView& process, const ThreadView& thread) {
    const ResolvedPolicy& resolved = placements.policies[*process.policy];
    const auto& policy = *resolved.policy;
    if (policy.model == Model::none || policy.model == Model::irq) return std::unexpected(NoPlace::model);
    if (!resolved.active) return std::unexpected(NoPlace::inactive);
    const auto rule = rule_of(policy, thread.thread.comm, thread.index, thread.joined);
    if (rule && policy.threads[*rule].leave) return std::unexpected(NoPlace::leave);
    if (process.is_settling && !is_in_force(policy, thread.joined)) return whole_of(resolved, process);

    assignments.use(placements.load, placements.number);
    Choice choice = choose(resolved, assignments, process, thread, rule);
    std::vector<Slot> reachable;
    if (process.cpuset != nullptr && !is_within(*choice.slots, *process.cpuset)) {
        reachable = cut_slots(*choice.slots, *process.cpuset);
        if (reachable.empty() && choice.are_lanes) {
            const unsigned number = rule ? static_cast<unsigned>(*rule) + 1 : 0;
            choice = {{policy.name, number, ""}, &resolved.distributions[number]};
            reachable = cut_slots(*choice.slots, *process.cpuset);
        }
        if (reachable.empty()) return std::unexpected(NoPlace::outside);
        choice.slots = &reachable;
        choice.is_cut = true;
    }
    const auto& placement = rule ? policy.threads[*rule].placement : policy.placement;
    const bool is_thread = distributes_threads(placement);
    auto number = placement.smt == policy::Smt::pair ? number_in(thread.thread.comm) : std::nullopt;
    if (number) {
        if (auto pairs = halves(*choice.slots, *number); !pairs.empty()) {
            reachable = std::move(pairs);
            choice.slots = &reachable;
        } else {
            number.reset();
        }
    }
    const TaskId unit = is_thread ? thread.thread.id : process.id;
    const bool is_in_group = choice.distribution.kind == Kind::in_group;
    using Unit = SlotRequest::Unit;
    const Slot& slot = (*choice.slots)[assignments.assign(
        {.distribution = choice.distribution,
         .slots = *choice.slots,
         .task = unit,
         .present = thread.thread.allowed,
         .unit = choice.are_lanes ? Unit::lane
                 : is_thread      ? Unit::thread
                                  : Unit::process,
         .cpuset = choice.is_cut ? process.cpuset : nullptr,
         .group_of = is_in_group ? process.id : TaskId{},
         .is_near_others = placement.near_measured,
         .process = process.id,
         .parent = process.parent,
         .number = number,
         .cramped = choice.are_lanes || is_thread ? nullptr : cramped_for(resolved, process)})];
    Target target{slot.mask, *process.policy, std::move(choice.distribution), unit, is_thread, slot.cpus};
    // A master does little, and what it starts counts the CPUs that it has: new workers, and itself after
    // execve(2), as HAProxy's at a reload. A reader that made another is none.
    const unsigned of_rule = rule ? static_cast<unsigned>(*rule) + 1 : 0;
    target.is_master = !choice.are_lanes && ((process.reads_nothing && resolved.reads(of_rule)) ||
                                             assignments.is_master(target.distribution, unit));
    for (std::size_t i = 0; target.is_master && i < choice.slots->size(); ++i)
        target.mask |= (*choice.slots)[i].mask & placements.balanced;
    target.is_unserved = is_unserved(resolved, process, of_rule);
    for (const auto& group : resolved.caches)
        if (target.is_unserved && group.intersects(slot.cpus))
            target.mask |= process.cpuset == nullptr ? group : group & *process.cpuset;
    return target;
}

std::string reason_of(const Placements& placements, const Target& target) {
    const auto& resolved = placements.policies[target.policy];
    const auto& policy = *resolved.policy;
    const auto& [name, rule, among, kind] = target.distribution;
    if (kind == Kind::whole)
        return fmt::format("policy {}: it is new, and may use all of its CPUs, {}, until it has settled",
                           policy.name, target.slot.to_list());
    const auto& placement = resolved.placements[rule];
    auto text = "policy " + policy.name;
    if (rule > 0) text += fmt::format(", thread rule {}", rule);
    if (kind == Kind::in_group) text += ", kept together with its process";
    if (kind == Kind::all_lanes) text += ", a lane of its interfaces";
    if (kind == Kind::lanes) {
        const auto* row = resolved.row(among);
        text += ", the lane of " + (row == nullptr ? among : fmt::format("{}", fmt::join(row->nics, ", ")));
    }
    if (target.is_master)
        return text +
               fmt::format(": it starts the programs that have its slots, and may use all of its CPUs, {}",
                           target.mask.to_list());
    if (target.is_unserved) text += ", its NIC is not known";
    const bool is_kept = kind == Kind::in_group && policy.together == policy::Together::measured;
    const bool is_lane = kind == Kind::lanes || kind == Kind::all_lanes;
    if (const auto& level = placements.measured; level && !is_lane && (is_kept || placement.near_measured))
        for (const auto& group : level->groups)
            if (group.intersects(target.slot))
                text += fmt::format(", among CPUs {}, by {}", group.to_list(), how_near(*level));
    constexpr std::array<std::string_view, 5> bound_to{"its CPU", "what cpus has of its core",
                                                       "what cpus has of its cache group",
                                                       "what cpus has of its NUMA node", "all of cpus"};
    if (placement.smt == policy::Smt::pair && target.mask != target.slot)
        return text + fmt::format(": slot {}, of which each of a pair has one CPU", target.slot.to_list());
    return text + fmt::format(": slot {}, bound to {}", target.slot.to_list(),
                              bound_to[std::max(static_cast<std::size_t>(placement.bind),
                                                target.is_unserved ? std::size_t{2} : 0)]);
}

} // namespace affinityd::planner
