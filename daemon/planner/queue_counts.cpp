// SPDX-License-Identifier: Apache-2.0
#include "planner/queue_counts.hpp"

#include <algorithm>
#include <string>

namespace affinityd::planner {

namespace {

/// What has no maximum cannot be changed.
unsigned within(std::size_t lanes, const std::optional<unsigned>& most, unsigned present) {
    if (most.value_or(0) == 0 || present == 0) return present;
    return static_cast<unsigned>(std::clamp<std::size_t>(lanes, 1, *most));
}

} // namespace

std::string_view to_string(NoQueueCount why) {
    if (why == NoQueueCount::unread)
        return "how many queues it has cannot be read now: their number stays until it can";
    return why == NoQueueCount::mixed
               ? "it has combined channels and others side by side: its number of queues stays"
               : "its driver does not say how many queues it may have: their number stays";
}

std::expected<QueueCountPlan, NoQueueCount> plan_queue_count(const netdev::Nic& nic, std::size_t lanes) {
    if (!nic.channels)
        return std::unexpected(nic.channels_fault == 0 ? NoQueueCount::not_known : NoQueueCount::unread);
    const auto& can = *nic.channels;
    const auto present = machine::in_use(can);
    if (present == machine::Channels{}) return std::unexpected(NoQueueCount::not_known);
    if (present.combined > 0 && (present.rx > 0 || present.tx > 0))
        return std::unexpected(NoQueueCount::mixed);
    const machine::Channels wanted{within(lanes, can.max_combined, present.combined),
                                   within(lanes, can.max_rx, present.rx),
                                   within(lanes, can.max_tx, present.tx)};
    // Packets arrive on those.
    const auto queues = wanted.combined > 0 ? wanted.combined : wanted.rx > 0 ? wanted.rx : wanted.tx;
    return QueueCountPlan{wanted, {lanes, queues}};
}

void add_queue_count(const ResolvedPolicy& resolved, const netdev::Nic& nic, const QueueCount& subject,
                     const NicLanes& lanes, Placements& into) {
    const auto& policy = *resolved.policy;
    if (policy.model != policy::Model::full || policy.queues != policy::Queues::lanes || lanes.is_guess)
        return;
    if (const auto plan = plan_queue_count(nic, lanes.lanes.size()))
        into.queues.push_back({subject, plan->wanted, nic.name, policy.name, plan->reason});
    else
        into.problems.push_back({policy.name, nic.name,
                                 "queues: lanes: " + std::string(to_string(plan.error())),
                                 "ethtool -l " + nic.name});
}

} // namespace affinityd::planner
