// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/undo.hpp"
#include "policy/policy.hpp"

#include <optional>
#include <string>

namespace affinityd::app {

/// What the AllowedCPUs= of a unit should be.
struct FenceWish {
    std::string policy; ///< on whose behalf; "": no policy wants the unit
    CpuSet cpus;        ///< of the policy
    policy::Drift drift = policy::Drift::enforce;
    std::string obstacle;        ///< why there must be no fence now; "": there is to be one
    bool is_unconfirmed = false; ///< whether the last change was made is not known
};

struct FencePlan {
    enum class Step {
        nothing,
        set,     ///< to the policy's CPUs
        restore, ///< the original
        forget,  ///< drop the record: somebody else has changed the unit since
    };
    Step step = Step::nothing;
    std::string state; ///< what there is to say of the unit if nothing is written
};

/// Decides from what systemd says (`present`; empty: not set) and from the undo record what happens to a
/// unit. Pure.
[[nodiscard]] FencePlan plan_fence(const FenceWish& wish, const CpuSet& present,
                                   const planner::UndoPointer& record, const CpuSet& online);

} // namespace affinityd::app
