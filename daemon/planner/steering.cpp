// SPDX-License-Identifier: Apache-2.0
#include "planner/steering.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

/// One listener, with all tasks that take connections from it.
struct Listener {
    ListenerCpu subject;
    const inventory::AcceptSocket* found = nullptr;
    std::set<std::pair<TaskId, int>> takers; ///< processes and their threads
};

using Listeners = std::map<std::uint64_t, Listener>; ///< by their cookies: in the order of their making

Listeners gather(AcceptProcesses processes) {
    Listeners listeners;
    for (const auto* process : processes)
        for (const auto& socket : process->sockets) {
            auto& listener = listeners[socket.cookie];
            if (listener.found == nullptr || !socket.threads.empty())
                listener.subject = subject_of(*process, socket);
            listener.found = &socket;
            for (const int thread : socket.threads)
                listener.takers.emplace(process->process, thread);
        }
    return listeners;
}

} // namespace

std::string_view to_string(NotSteered why) {
    static constexpr std::array<std::string_view, 7> texts{
        "the only listener of its address: the program does not use SO_REUSEPORT",
        "several tasks take connections from it",
        "nobody was seen to take connections from it yet",
        "its worker has no lane",
        "somebody else has told it a CPU",
        "it cannot be reached",
        "one worker got more than twice its share of the connections"};
    return texts[static_cast<std::size_t>(why)];
}

ListenerCpu subject_of(const inventory::AcceptSockets& process, const inventory::AcceptSocket& socket) {
    return {socket.cookie, process.process.tid, process.parent, socket.number, socket.port};
}

ListenerPlan plan_listeners(const std::string& policy, AcceptProcesses processes, const ArrivalCpu& arrives,
                            const UndoLookup& undo) {
    ListenerPlan plan;
    const auto listeners = gather(processes);
    std::map<std::vector<std::uint8_t>, std::size_t> of_address;
    for (const auto& [cookie, listener] : listeners)
        if (listener.found->shares_port) ++of_address[listener.found->bound_to];
    const auto leave = [&](NotSteered why) { ++plan.left[why]; };
    for (const auto& [cookie, listener] : listeners) {
        const auto& found = *listener.found;
        const bool has_record = undo.find(listener.subject).has_value();
        const auto group = of_address.find(found.bound_to);
        if (!found.shares_port || group == of_address.end() || group->second < 2)
            leave(NotSteered::alone);
        else if (found.incoming_cpu >= 0 && !has_record)
            leave(NotSteered::set_already);
        else if (listener.takers.size() > 1)
            leave(NotSteered::shared);
        else if (listener.takers.empty())
            leave(NotSteered::not_seen), plan.undecided.push_back(listener.subject);
        else if (const auto cpu = arrives(listener.takers.begin()->first, listener.takers.begin()->second))
            plan.targets.push_back(
                {listener.subject, CpuSet{*cpu}, policy, listener.takers.begin()->second, found.bound_to});
        else
            leave(NotSteered::no_lane), plan.undecided.push_back(listener.subject);
    }
    for (const auto* process : processes)
        if (process->code != 0 && process->code != ESRCH) leave(NotSteered::refused);
    return plan;
}

bool has_own_arrivals(std::span<const ListenerTarget> targets, int thread) {
    const auto own = std::ranges::find(targets, thread, &ListenerTarget::thread);
    return own != targets.end() && std::ranges::none_of(targets, [&](const ListenerTarget& other) {
               return other.thread != thread && other.policy == own->policy && other.wanted == own->wanted &&
                      other.bound_to == own->bound_to;
           });
}

bool is_pinned_only(const ResolvedPolicy& resolved, const ListenerPlan* plan) {
    using policy::Steer;
    const auto& policy = *resolved.policy;
    const bool is_close =
        policy.placement.bind == policy::Bind::cpu || policy.placement.bind == policy::Bind::core;
    if (policy.model != policy::Model::full || !is_close || resolved.all_lanes.size() < 2) return false;
    if (policy.steer == Steer::none) return true;
    if (policy.steer == Steer::tasks || policy.steer == Steer::flows) return false;
    if (plan == nullptr || !plan->targets.empty()) return false;
    // What is only not known yet is not told.
    return std::ranges::any_of(plan->left, [](const auto& left) {
        return left.first != NotSteered::not_seen && left.first != NotSteered::no_lane;
    });
}

std::string pinned_note(const ResolvedPolicy& resolved) {
    const auto& bind = resolved.policy->placement.bind;
    return fmt::format("bind: {} and no steering: about one packet in {} is read where it arrives; without "
                       "bind, the scheduler may follow packets inside the cache group",
                       bind == policy::Bind::cpu ? "cpu" : "core", resolved.all_lanes.size());
}

std::map<std::vector<std::uint8_t>, AcceptShares::Counts>
count_accepted(AcceptProcesses processes, std::span<const ListenerTarget> targets) {
    std::map<std::uint64_t, std::optional<std::size_t>> accepted; // a process may have several descriptors
    for (const auto* process : processes) {
        std::map<std::uint64_t, std::size_t> its;
        for (const auto& socket : process->sockets)
            if (socket.accepted) its.emplace(socket.cookie, *socket.accepted);
        for (const auto& [cookie, count] : its)
            accepted[cookie] = accepted[cookie].value_or(0) + count;
    }
    std::map<std::vector<std::uint8_t>, AcceptShares::Counts> counts;
    for (const auto& target : targets)
        counts[target.bound_to][target.subject.cookie] = accepted[target.subject.cookie];
    std::erase_if(counts, [](const auto& address) { return address.second.size() < 2; });
    return counts;
}

std::optional<unsigned> arrival_cpu(const ResolvedPolicy& resolved, const Assignments& assignments,
                                    const TaskId& task) {
    using Kind = DistributionId::Kind;
    const auto [begin, end] = assignments.seats().equal_range(task);
    for (auto seat = begin; seat != end; ++seat) {
        const auto& distribution = assignments.distribution(seat->second.table);
        if (distribution.policy != resolved.policy->name) continue;
        if (distribution.kind == Kind::lanes) {
            const auto* nic = resolved.lanes(distribution.among);
            if (nic == nullptr) continue;
            if (const auto cpu = nic->arrival_cpu(seat->second.now)) return cpu;
        } else if (distribution.kind == Kind::all_lanes) {
            for (const auto& nic : resolved.nics)
                if (const auto cpu = nic.arrival_cpu(seat->second.now)) return cpu;
        }
    }
    return std::nullopt;
}

} // namespace affinityd::planner
