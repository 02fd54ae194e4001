// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/held.hpp"
#include "planner/place.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace affinityd::planner {

/// What is to become of one thread.
struct ThreadPlan {
    enum class State : std::uint8_t {
        unwanted,   ///< no policy wants it, nothing was done to it
        in_place,   ///< has what it should have
        changes,    ///< `action` says what is to be done
        left_alone, ///< under a policy that does not touch it: model none or irq, leave, prior: keep
        yielded,    ///< somebody else changed it after us and the policy says yield or once
        outside,    ///< the policy's CPUs and those of its cpuset have none in common
        immovable,  ///< a kernel thread that may not be moved
    };
    State state = State::unwanted;
    std::optional<Action> action;
    std::optional<Target> target;
};

/// Decides about one thread of a process that `policy` wants (index into the set; nothing: no policy). Pure
/// but for the seats in `assignments`. An unchanged thread under an unchanged world gives no action.
[[nodiscard]] ThreadPlan plan_thread(const Placements& placements, Assignments& assignments,
                                     std::optional<std::size_t> policy, const Unit& unit,
                                     const Memory& memory);

/// Changes of interrupts and steering maps, in the placements' order.
[[nodiscard]] std::vector<Action> plan_queues(const Placements& placements, const Memory& memory);

/// True if a held subject's mask is still the one we gave it, so that it may be put back.
[[nodiscard]] bool is_still_ours(const Held& held, const CpuSet& present, const CpuSet& online);

} // namespace affinityd::planner
