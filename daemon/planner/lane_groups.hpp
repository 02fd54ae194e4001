// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/interfaces.hpp"
#include "planner/placements.hpp"

#include <span>
#include <vector>

namespace affinityd::planner {

/// Which lanes may go to other cores although they could stay.
enum class Moves {
    none,
    of_changed, ///< of interfaces that want more or fewer lanes than before, or may have them elsewhere
    all,
};

/// Interfaces that are about to get lanes, all the same ones.
struct LaneGroup {
    Interfaces::Group interfaces;
    const NicLanes* before = nullptr; ///< what they had until now; nullptr: nothing that they might keep
    [[nodiscard]] std::span<const Slot> kept() const {
        return before == nullptr ? std::span<const Slot>() : before->lanes;
    }
    [[nodiscard]] std::span<const unsigned> kept_interrupts() const {
        return before == nullptr ? std::span<const unsigned>() : before->interrupts;
    }
    /// CPUs with the work of one: of each lane, and of its interrupts, if these are elsewhere.
    [[nodiscard]] std::vector<unsigned> kept_work() const;
};

/// The groups of a policy's interfaces. Under `full` those that serve the same tasks are in one, under `irq`
/// each is for itself.
///
/// `before`: the same policy as it was placed last, nullptr: never. A group keeps the lanes of the one with
/// which it shares most devices, by whatever name they go now; each is kept once. Lanes that were a guess,
/// because nobody knew how many tasks would be served, are not kept once that is known.
[[nodiscard]] std::vector<LaneGroup> lane_groups(const policy::Policy& policy, const Interfaces& interfaces,
                                                 const NicNames& nics, const NicUsage& usage,
                                                 const ResolvedPolicy* before);

/// Lanes of a policy that none of its interfaces has now: their links are down, they are unplugged, or they
/// serve nobody. They are kept for when these are back; other interfaces may have their cores meanwhile. Of
/// very many those that were there last.
[[nodiscard]] std::vector<NicLanes> absent_lanes(const ResolvedPolicy& before, const ResolvedPolicy& now,
                                                 const machine::Machine& machine);

} // namespace affinityd::planner
