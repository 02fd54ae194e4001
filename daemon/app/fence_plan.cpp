// SPDX-License-Identifier: Apache-2.0
#include "app/fence_plan.hpp"

#include "planner/plan.hpp"

namespace affinityd::app {

FencePlan plan_fence(const FenceWish& wish, const CpuSet& present, const planner::UndoPointer& record,
                     const CpuSet& online) {
    using Step = FencePlan::Step;
    const bool is_ours = record && planner::is_still_ours(*record, present, online);
    if (wish.policy.empty() || !wish.obstacle.empty()) {
        if (!record) return {Step::nothing, wish.obstacle};
        return {is_ours ? Step::restore : Step::forget, wish.obstacle};
    }
    if (present == wish.cpus) return {Step::nothing, "in place"};
    const bool gives_way = record && !is_ours && !wish.is_unconfirmed && wish.drift != policy::Drift::enforce;
    if (gives_way) return {Step::nothing, "somebody else has changed it"};
    return {Step::set, {}};
}

} // namespace affinityd::app
