// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/interfaces.hpp"
#include "planner/placements.hpp"

#include <span>
#include <vector>

namespace affinityd::planner {

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

} // namespace affinityd::planner
