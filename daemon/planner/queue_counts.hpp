// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"
#include "planner/placements.hpp"

#include <cstddef>
#include <expected>
#include <string_view>

namespace affinityd::planner {

/// How many queues an interface is to have, and why.
struct QueueCountPlan {
    machine::Channels wanted;
    MatchesLanes reason;
};

/// Why it cannot be said, or may not be.
enum class NoQueueCount {
    not_known, ///< its driver does not say how many it has, or may have; or the machine is a recording
    unread,    ///< its driver cannot say it for a moment: the interface is in power save, or being reset
    mixed,     ///< it has combined channels and others side by side: which of them serve whom, is not known
};
[[nodiscard]] std::string_view to_string(NoQueueCount why);

/// As many channels as lanes, as far as the device can: combined ones where it has those, else as many of
/// each direction that can be changed. Channels for other purposes stay as they are.
[[nodiscard]] std::expected<QueueCountPlan, NoQueueCount> plan_queue_count(const netdev::Nic& nic,
                                                                           std::size_t lanes);

/// The target for an interface with these lanes, where its policy says `queues: lanes`; a problem where there
/// can be none. Without any task there are as many lanes as queues, which says nothing.
void add_queue_count(const ResolvedPolicy& resolved, const netdev::Nic& nic, const QueueCount& subject,
                     const NicLanes& lanes, Placements& into);

} // namespace affinityd::planner
