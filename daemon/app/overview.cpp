// SPDX-License-Identifier: Apache-2.0
#include "app/overview.hpp"

#include "app/nic_notes.hpp"
#include "host/self.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

/// The number of queues that the first NIC under `full` has, where its workers are on more or fewer lanes;
/// "": as many.
std::string queues_note(const World& world, const planner::ResolvedPolicy& resolved) {
    if (resolved.policy->model != policy::Model::full) return {};
    for (const auto& lanes : resolved.nics) {
        const auto* nic =
            lanes.is_guess || lanes.nics.empty() ? nullptr : world.machine().nic(lanes.nics.front());
        if (nic == nullptr) continue;
        const auto queues =
            std::ranges::count(nic->queues, machine::Direction::rx, &netdev::Queue::direction);
        if (queues == 0 || static_cast<std::size_t>(queues) == lanes.lanes.size()) continue;
        return fmt::format("{} has {} queue{} for {} worker{} (ethtool -L changes that)", nic->name, queues,
                           queues == 1 ? "" : "s", lanes.lanes.size(), lanes.lanes.size() == 1 ? "" : "s");
    }
    return {};
}

/// That a policy does not do what it says, and why.
std::string policy_note(const World& world, std::size_t policy, std::size_t processes,
                        const planner::ListenerPlan* plan) {
    if (auto note = nic_note(world, policy, processes); !note.empty()) return note;
    const auto& resolved = world.placements().policies[policy];
    const auto& online = world.placements().online;
    if (processes > 0 && planner::is_pinned_only(resolved, plan)) return planner::pinned_note(resolved);
    if (planner::lacks_flow_tables(resolved, world.placements()))
        return "steer: flows brings nothing here: there is no table of flows (rps_sock_flow_entries) in the "
               "kernel, "
               "or none in this network namespace";
    if (processes > 0)
        if (auto note = queues_note(world, resolved); !note.empty()) return note;
    if (resolved.policy->model == policy::Model::irq || !planner::restricts_nothing(resolved, online))
        return {};
    return "restricts nothing on this machine: each of its places has all online CPUs (" + online.to_list() +
           ")";
}

/// All CPUs that a policy or one of its thread rules may use.
CpuSet cpus_of(const planner::ResolvedPolicy& resolved) {
    CpuSet cpus = resolved.allowed;
    for (std::size_t i = 1; i < resolved.distributions.size(); ++i)
        for (const auto& slot : resolved.distributions[i])
            cpus |= slot.cpus;
    return cpus;
}

} // namespace

std::vector<status::PolicyStatus> policy_status(const World& world, const Holdings& holdings,
                                                const enforcer::Executor& executor, const Releases& releases,
                                                const Steering& steering) {
    std::vector<status::PolicyStatus> list;
    for (std::size_t i = 0; i < world.policies().policies.size(); ++i) {
        const auto& policy = world.policy(i);
        const auto& resolved = world.placements().policies[i];
        status::PolicyStatus value{.name = policy.name,
                                   .description = policy.description,
                                   .file = policy.at.file,
                                   .model = policy.model,
                                   .cpus = cpus_of(resolved),
                                   .active = resolved.active,
                                   .released = releases.policy(policy.name)};
        for (const auto& lanes : resolved.nics) {
            value.nics.insert(value.nics.end(), lanes.nics.begin(), lanes.nics.end());
            auto& shown = value.lanes.emplace_back(status::LanesStatus{lanes.nics, lanes.spares, {}});
            for (const auto& lane : lanes.lanes)
                shown.cores.push_back(lane.cpus);
        }
        if (const auto held = holdings.find(policy.name); held != holdings.end()) value.held = held->second;
        for (const auto& slot : policy.allow_join)
            value.held.joined.slots.try_emplace(slot);
        const auto& corrected = executor.corrected();
        if (const auto found = corrected.find(policy.name); found != corrected.end())
            value.held.drift_put_right = found->second;
        const auto* plan = steering.plan_of(policy.name);
        if (plan != nullptr) value.packets.steer = *plan;
        value.note = policy_note(world, i, value.held.processes, plan);
        list.push_back(std::move(value));
    }
    return list;
}

void add_outcomes(const enforcer::Executor& executor, status::Counters& into) {
    for (const auto& [subject, refusal] : executor.refusals().entries())
        into.refused.emplace_back(subject, to_string(refusal));
    const auto& counts = executor.counts();
    for (std::size_t i = 0; i <= static_cast<std::size_t>(enforcer::Outcome::failed); ++i)
        if (counts[i] > 0)
            into.outcomes[std::string(to_string(static_cast<enforcer::Outcome>(i)))] = counts[i];
}

std::vector<planner::Problem> event_problems(const EventQueue& events, std::chrono::seconds pass,
                                             const host::Root& root) {
    if (events.absence().empty()) return {};
    // ECONNREFUSED: of another network namespace; EPERM: without the capability, or in a user namespace.
    const bool is_elsewhere = events.absence().find("Connection refused") != std::string::npos;
    const std::string remedy =
        host::is_container(root)
            ? "start the container with --privileged --network=host --pid=host (podman, docker)"
            : fmt::format(
                  "systemctl cat affinityd; remove {} from its drop-in; then systemctl daemon-reload; "
                  "systemctl restart affinityd",
                  is_elsewhere ? "PrivateNetwork=" : "PrivateUsers= or CapabilityBoundingSet=");
    return {{{},
             "process events",
             fmt::format("new processes and threads are placed up to {} s late (services about 1 s), as the "
                         "kernel sends none: {}",
                         pass.count(), events.absence()),
             remedy}};
}

std::vector<planner::Problem> right_problems(const enforcer::Executor& executor) {
    std::vector<planner::Problem> list;
    const auto count = std::ranges::count(executor.refusals().entries(), enforcer::Outcome::not_permitted,
                                          [](const auto& entry) { return entry.second.outcome; });
    if (count > 0)
        list.push_back(
            {{},
             "rights",
             fmt::format("{} of the changes now wanted {} not permitted", count, count == 1 ? "is" : "are"),
             "tasks of other users need CAP_SYS_NICE; interrupts and queues need root, and a /proc and /sys "
             "that can be written"});
    return list;
}

void add_coexistence(const Coexistence& coexistence, status::Overview& into) {
    for (const auto& writer : coexistence.other_writers())
        into.other_writers.push_back({writer.name, writer.where, writer.note, writer.keeps_off});
}

} // namespace affinityd::app
