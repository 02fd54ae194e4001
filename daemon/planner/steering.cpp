// SPDX-License-Identifier: Apache-2.0
#include "planner/steering.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

constexpr std::size_t most_compared = 8; // tasks that share a listener

/// One listener, with the tasks that take connections from it.
struct Listener {
    ListenerCpu subject;
    const inventory::AcceptSocket* found = nullptr;
    const inventory::ListeningSockets* around = nullptr; ///< all of its namespace; nullptr: not known
    std::set<std::pair<TaskId, int>> takers;             ///< processes and their threads, not all of many
    std::set<uid_t> users;                               ///< of the processes that have it open
    std::expected<unsigned, NotSteered> cpu = std::unexpected(NotSteered::not_seen);
};

using Listeners = std::map<std::uint64_t, Listener>; ///< by their cookies: in the order of their making

/// Those of one address.
struct Group {
    std::size_t size = 0;
    bool is_whole = true;    ///< each of them can be steered, as far as they are known
    bool is_known = true;    ///< they are all
    bool is_attended = true; ///< somebody takes from each
};
/// The same address in another namespace is another one.
using GroupKey = std::pair<const inventory::ListeningSockets*, std::vector<std::uint8_t>>;
using AddressGroups = std::map<GroupKey, Group>;

Listeners gather(AcceptProcesses processes) {
    Listeners listeners;
    for (const auto* process : processes)
        for (const auto& socket : process->sockets) {
            auto& listener = listeners[socket.cookie];
            if (listener.found == nullptr || !socket.threads.empty())
                listener.subject = subject_of(*process, socket);
            listener.found = &socket;
            listener.around = process->around.get();
            listener.users.insert(process->user);
            for (const int thread : socket.threads)
                if (listener.takers.size() <= most_compared)
                    listener.takers.emplace(process->process, thread);
        }
    return listeners;
}

/// Where its tasks' connections arrive, if that is the same CPU for all of them.
std::expected<unsigned, NotSteered> cpu_for(const Listener& listener, const ArrivalCpu& arrives) {
    std::expected<unsigned, NotSteered> cpu = std::unexpected(NotSteered::not_seen);
    if (listener.takers.size() > most_compared) return std::unexpected(NotSteered::shared);
    for (const auto& [process, thread] : listener.takers) {
        const auto its = arrives(process, thread);
        if (cpu && its && *cpu != *its) return std::unexpected(NotSteered::shared);
        if (!its) return listener.takers.size() > 1 ? std::unexpected(NotSteered::shared) : its;
        cpu = its;
    }
    return cpu;
}

using Inodes = std::set<std::uint64_t>;

/// Listeners of the policy's processes.
struct Held {
    Inodes all;
    Inodes attended; ///< from which somebody takes
    const Inodes& given_up;
    Inodes& unattended; ///< what is found
};

/// Looks at all of a listener's address: at those that no process of the policy has open, too.
void look_around(const Listener& listener, const Held& held, Group& group) {
    if (listener.around == nullptr) return;
    for (const auto inode : listener.around->at_address_of(listener.found->inode)) {
        const bool is_attended = held.attended.contains(inode);
        const bool is_held = held.all.contains(inode);
        if (is_held && !is_attended) held.unattended.insert(inode);
        if (!is_attended)
            (is_held && !held.given_up.contains(inode) ? group.is_attended : group.is_whole) = false;
    }
}

GroupKey group_of(const Listener& listener) { return {listener.around, listener.found->bound_to}; }

/// What it has open is not known, and may be listeners of this one's address: those of a group are made by
/// one user, and taken from by processes of one user, or of root's. What others were given is found as
/// strangers'.
bool may_share(const inventory::AcceptSockets& unknown, const Listener& listener) {
    if (unknown.around != nullptr && listener.around != nullptr && unknown.around.get() != listener.around)
        return false;
    return unknown.user == 0 || listener.users.contains(unknown.user);
}

AddressGroups address_groups_of(const Listeners& listeners, AcceptProcesses processes, const Inodes& given_up,
                                Inodes& unattended) {
    Held held{{}, {}, given_up, unattended};
    std::vector<const inventory::AcceptSockets*> unknown;
    for (const auto* process : processes) {
        held.all.insert(process->held.begin(), process->held.end());
        for (const auto& socket : process->sockets)
            held.attended.insert(socket.inode);
        if (!process->knows_all && process->code != ESRCH) unknown.push_back(process);
    }
    AddressGroups groups;
    for (const auto& [cookie, listener] : listeners) {
        if (!listener.found->shares_port) continue;
        auto& group = groups[group_of(listener)];
        ++group.size;
        if (std::ranges::any_of(unknown, [&](const auto* one) { return may_share(*one, listener); }))
            group.is_known = false;
        else if (group.size == 1)
            look_around(listener, held, group);
        if (listener.cpu || listener.cpu.error() == NotSteered::not_seen) continue;
        (listener.cpu.error() == NotSteered::settling ? group.is_known : group.is_whole) = false;
    }
    return groups;
}

/// Where nothing was changed yet, as the first call has not come back, the record is of no weight.
std::optional<UndoRecord> record_of(const Listener& listener, const UndoLookup& undo) {
    const auto record = undo.find(listener.subject);
    const bool is_untouched = record && record->before == record->original &&
                              *record->before == machine::setting_of(listener.found->incoming_cpu);
    return is_untouched ? std::nullopt : record;
}

/// By somebody else.
bool told_by_others(int cpu, const std::optional<UndoRecord>& record) {
    if (cpu < 0) return false;
    const auto told = machine::setting_of(cpu);
    return !record || (told != record->granted && told != record->asked && told != record->original &&
                       told != record->before);
}

/// The CPU that it is to be told, or why none.
std::expected<unsigned, NotSteered> verdict_on(const Listener& listener, const AddressGroups& groups,
                                               const std::optional<UndoRecord>& record) {
    const auto& found = *listener.found;
    const bool has_record = record.has_value();
    if (!found.shares_port) return std::unexpected(NotSteered::no_group);
    if (told_by_others(found.incoming_cpu, record)) return std::unexpected(NotSteered::set_already);
    const auto& group = groups.at(group_of(listener));
    const bool is_not_seen = !listener.cpu && listener.cpu.error() == NotSteered::not_seen;
    if (!listener.cpu && !is_not_seen) return listener.cpu;
    if (!group.is_whole) return std::unexpected(NotSteered::others);
    if (is_not_seen) return listener.cpu;
    if (!group.is_known) return has_record ? listener.cpu : std::unexpected(NotSteered::unknown);
    if (!group.is_attended) return has_record ? listener.cpu : std::unexpected(NotSteered::unattended);
    if (group.size < 2) return std::unexpected(NotSteered::single);
    return listener.cpu;
}

bool is_undecided(NotSteered why) {
    return why == NotSteered::not_seen || why == NotSteered::settling || why == NotSteered::unknown ||
           why == NotSteered::unattended;
}

} // namespace

std::string_view to_string(NotSteered why) {
    static constexpr std::array<std::string_view, 16> texts{
        "the program does not use SO_REUSEPORT there",
        "the only listener of its address",
        "several tasks take connections from it",
        "nobody was seen to take connections from it yet",
        "its worker has no place yet",
        "its worker has no lane where packets arrive",
        "the queues of its worker's NIC are placed by another policy",
        "its worker was released by hand",
        "somebody else has moved its worker",
        "somebody else has told it a CPU",
        "another one of its address is not steered, and would get few connections or none",
        "who else listens on its address is not known now",
        "nobody was seen to take connections from another one of its address (select and io_uring are not "
        "seen)",
        "its process has too many",
        "it cannot be reached",
        "its connections were shared out unevenly"};
    return texts[static_cast<std::size_t>(why)];
}

ListenerCpu subject_of(const inventory::AcceptSockets& process, const inventory::AcceptSocket& socket) {
    return {socket.cookie, process.process.tid, process.parent, socket.number, socket.port, socket.inode};
}

ListenerPlan plan_listeners(const std::string& policy, AcceptProcesses processes, const ArrivalCpu& arrives,
                            const UndoLookup& undo, const Inodes& given_up) {
    ListenerPlan plan;
    auto listeners = gather(processes);
    for (auto& [cookie, listener] : listeners)
        listener.cpu = cpu_for(listener, arrives);
    const auto groups = address_groups_of(listeners, processes, given_up, plan.unattended);
    for (const auto& [cookie, listener] : listeners) {
        const auto record = record_of(listener, undo);
        const auto cpu = verdict_on(listener, groups, record);
        if (cpu) {
            plan.targets.push_back({listener.subject, CpuSet{*cpu}, policy, listener.takers.begin()->second,
                                    listener.found->bound_to});
            continue;
        }
        plan.leave(cpu.error(), listener.subject.process);
        for (const auto& [taker, thread] : listener.takers)
            if (taker.tid != listener.subject.process) ++plan.left_of[taker.tid][cpu.error()];
        const bool is_undecided_now = is_undecided(cpu.error());
        (is_undecided_now ? plan.undecided : plan.decided_against).push_back(listener.subject);
        if (!is_undecided_now && record && cpu.error() != NotSteered::set_already)
            ++plan.still_told[listener.subject.process];
    }
    for (const auto* process : processes) {
        plan.are_some_avoided |= process->is_avoided();
        if (process->code != 0 && process->code != ESRCH)
            plan.leave(NotSteered::refused, process->process.tid);
        if (process->left_out > 0) plan.leave(NotSteered::too_many, process->process.tid, process->left_out);
    }
    return plan;
}

void ListenerPlan::leave(NotSteered why, int process, std::size_t count) {
    left[why] += count;
    left_of[process][why] += count;
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
    if (policy.steer == Steer::tasks) return false;
    if (policy.steer == Steer::flows) return !policy.steering; // nothing may be written for them
    if (plan == nullptr || !plan->targets.empty()) return false;
    if (plan->left.contains(NotSteered::unfair) || plan->are_some_avoided) return false; // only for a while
    // What is only not known yet is not told. Who has no listeners at all sends, or takes datagrams.
    return plan->left.empty() ||
           std::ranges::any_of(plan->left, [](const auto& left) { return !is_undecided(left.first); });
}

std::string pinned_note(const ResolvedPolicy& resolved) {
    const auto& bind = resolved.policy->placement.bind;
    return fmt::format("bind: {} and no steering: about one packet in {} is read where it arrives; without "
                       "bind, the scheduler may follow packets inside the cache group",
                       bind == policy::Bind::cpu ? "cpu" : "core", resolved.all_lanes.size());
}

std::string alike_note(const ResolvedPolicy& resolved, const ListenerPlan* plan) {
    if (plan == nullptr) return {};
    std::map<std::vector<std::uint8_t>, std::vector<const ListenerTarget*>> of_addresses;
    for (const auto& target : plan->targets)
        of_addresses[target.bound_to].push_back(&target);
    for (const auto& [address, targets] : of_addresses) {
        const auto& first = *targets.front();
        const auto is_same = [&](auto what) {
            return std::ranges::all_of(targets, [&](const auto* one) { return what(*one) == what(first); });
        };
        if (targets.size() < 2 || !is_same([](const auto& one) { return one.wanted; })) continue;
        const bool is_process = is_same([](const auto& one) { return one.subject.process; });
        const bool wants_spread = is_process && resolved.policy->placement.spread == policy::Spread::any;
        return fmt::format("port {}: packets for the workers of all {} listeners arrive on CPU {}, so that "
                           "steering cannot choose among them{}",
                           first.subject.port, targets.size(), first.wanted.to_string(),
                           wants_spread ? "; threads of one process share a lane unless the policy says "
                                          "spread: core"
                                        : "");
    }
    return {};
}

bool lacks_flow_tables(const ResolvedPolicy& resolved, const Placements& placements) {
    const auto& policy = *resolved.policy;
    if (policy.model != policy::Model::full || policy.steer != policy::Steer::flows || !policy.steering)
        return false;
    const auto is_its = [&](const QueueTarget& target) { return target.policy == policy.name; };
    return std::ranges::any_of(placements.queues, is_its) &&
           std::ranges::none_of(placements.queues, [&](const QueueTarget& target) {
               return is_its(target) && std::holds_alternative<FlowTable>(target.subject);
           });
}

ByAddress count_accepted(AcceptProcesses processes, std::span<const ListenerTarget> targets,
                         std::optional<std::size_t> inventory::AcceptSocket::*what) {
    std::map<std::uint64_t, std::optional<std::size_t>> accepted; // a process may have several descriptors
    for (const auto* process : processes) {
        std::map<std::uint64_t, std::size_t> its;
        for (const auto& socket : process->sockets)
            if (socket.*what) its.emplace(socket.cookie, *(socket.*what));
        for (const auto& [cookie, count] : its)
            accepted[cookie] = accepted[cookie].value_or(0) + count;
    }
    ByAddress counts;
    for (const auto& target : targets)
        counts[target.bound_to][target.subject.cookie] = accepted[target.subject.cookie];
    std::erase_if(counts, [](const auto& address) { return address.second.size() < 2; });
    return counts;
}

inventory::PortSample sample_at(AcceptProcesses processes, const std::vector<std::uint8_t>& address) {
    inventory::PortSample sum;
    for (const auto* process : processes) {
        const auto socket = std::ranges::find(process->sockets, address, &inventory::AcceptSocket::bound_to);
        if (socket == process->sockets.end()) continue;
        if (const auto its = process->samples.find(socket->port); its != process->samples.end())
            sum += its->second;
    }
    return sum;
}

std::optional<std::uint64_t> opened_around(AcceptProcesses processes,
                                           const std::vector<std::uint8_t>& address) {
    for (const auto* process : processes)
        if (process->opened &&
            std::ranges::find(process->sockets, address, &inventory::AcceptSocket::bound_to) !=
                process->sockets.end())
            return process->opened;
    return std::nullopt;
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

NotSteered why_no_arrival(const ResolvedPolicy& resolved) {
    const bool is_of_others =
        !resolved.nics.empty() &&
        std::ranges::all_of(resolved.nics, [](const auto& nic) { return nic.arrivals.empty(); });
    return is_of_others ? NotSteered::of_others : NotSteered::no_lane;
}

} // namespace affinityd::planner
