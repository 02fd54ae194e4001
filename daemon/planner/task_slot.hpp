// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "planner/assignments.hpp"
#include "planner/placements.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace affinityd::planner {

/// Packets for a task that were seen: how often, by the CPU where they arrived.
using Arrivals = std::map<unsigned, std::uint64_t>;

/// How a task under `steer: tasks` stands to its packets.
enum class AtArrivals : std::uint8_t {
    here,    ///< most of them arrive on its lane
    unknown, ///< too few were seen
    mixed,   ///< no lane has a clear majority of them
    no_lane, ///< they arrive where the policy has no lane, or the task has no slot on a lane
    crowded, ///< their lane has more than its share of the work
    moves    ///< it changes over to their lane
};
[[nodiscard]] std::string_view to_string(AtArrivals state);

/// What is to become of a task.
struct TaskSlot {
    AtArrivals state = AtArrivals::unknown;
    struct Move {
        unsigned table = 0, from = 0; ///< for Assignments::move()
        Slot to;
    };
    std::optional<Move> move{}; ///< of `moves`
};

/// A server with a task for each connection cannot choose where its packets arrive: the task goes where they
/// do. It moves if more than two thirds of them, and of at least two, arrive on one other lane of its policy,
/// unless that lane would have more than twice its share of the work of all lanes (of two lanes: more than
/// three quarters of it), more than three quarters of a CPU, and more than the lane that the task leaves has.
/// Pure.
[[nodiscard]] TaskSlot slot_at_arrivals(const ResolvedPolicy& resolved, const Placements& placements,
                                        const Assignments& assignments, const TaskId& task,
                                        const Arrivals& arrivals);

/// The same for a task that says itself on which CPU its packets arrive, within the distribution where it has
/// a slot (`table`, of Assignments::number()), be that one of lanes or not. `here`, `moves`, `crowded`, or
/// `no_lane`. Pure.
[[nodiscard]] TaskSlot slot_with_cpu(const ResolvedPolicy& resolved, const Placements& placements,
                                     const Assignments& assignments, const TaskId& task, unsigned table,
                                     unsigned cpu);

} // namespace affinityd::planner
