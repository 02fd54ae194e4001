// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/world.hpp"
#include "planner/assignments.hpp"

#include <memory>

namespace affinityd::app {

/// What an answer that is worked out in slices rests on: the policies in force when it began, and a copy of
/// the assignments, as looking must not assign slots.
class AnswerBasis {
  public:
    /// Takes both with the first call, so that what was asked for behind a reload is answered by the new
    /// policies. False: a reload has replaced the policies since.
    [[nodiscard]] bool hold(const Current& current, const planner::Assignments& assignments) {
        if (!world_) {
            world_ = current.world;
            assignments_ = assignments;
        }
        return world_ == current.world;
    }
    /// Of a basis that was held.
    [[nodiscard]] const World& world() const { return *world_; }
    [[nodiscard]] planner::Assignments& assignments() { return assignments_; }

  private:
    std::shared_ptr<World> world_;
    planner::Assignments assignments_;
};

} // namespace affinityd::app
