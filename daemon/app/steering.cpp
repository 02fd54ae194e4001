// SPDX-License-Identifier: Apache-2.0
#include "app/steering.hpp"

namespace affinityd::app {

Steering::Steering(const Parts& parts)
    : sampled_(parts.sampled), listeners_(parts.listeners),
      tasks_({parts.listeners.current, parts.listeners.tasks, parts.assignments, parts.listeners.releases,
              parts.look_again, parts.has_work}),
      looks_({parts.listeners.root, parts.listeners.current, parts.listeners.tasks,
              [this](const auto& found) { note(found); }, parts.listeners.log}) {}

void Steering::observe(const KnownProcess& process) {
    listeners_.observe(process);
    tasks_.observe(process);
    looks_.observe(process);
}

void Steering::note(const locality::ReadCounts& found) {
    sampled_(found);
    tasks_.note(found);
}

void Steering::end_pass(std::size_t most) {
    tasks_.end_pass();
    looks_.ask(most);
}

void Steering::explain(const TaskId& process, status::ProcessExplanation& into) const {
    listeners_.explain(process, into);
    tasks_.explain(process, into);
}

} // namespace affinityd::app
