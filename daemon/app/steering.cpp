// SPDX-License-Identifier: Apache-2.0
#include "app/steering.hpp"

namespace affinityd::app {

Steering::Steering(const Parts& parts)
    : parts_(parts), tasks_({parts.current, parts.tasks, parts.assignments, parts.releases, parts.look_again,
                             parts.has_work}) {}

void Steering::note(const locality::ReadCounts& found) {
    parts_.counted(found);
    tasks_.note(found);
}

const planner::ListenerPlan* Steering::plan_of(std::string_view /*policy*/) const { return nullptr; }

bool Steering::takes_none(const KnownProcess& /*process*/) const { return false; }

} // namespace affinityd::app
