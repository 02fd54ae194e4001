// SPDX-License-Identifier: Apache-2.0
#include "app/steering.hpp"

#include "planner/worker_lanes.hpp"

#include <map>
#include <optional>

namespace affinityd::app {

Steering::Steering(const Parts& parts)
    : parts_(parts), listeners_(parts.listeners),
      tasks_({parts.listeners.current, parts.listeners.tasks, parts.assignments, parts.listeners.releases,
              parts.look_again, parts.has_work}),
      looks_({parts.listeners.root, parts.listeners.current, parts.listeners.tasks,
              [this](const auto& found) { note(found); }, parts.listeners.log}) {}

void Steering::observe(const KnownProcess& process) {
    listeners_.observe(process);
    tasks_.observe(process);
    looks_.observe(process);
}

Listeners::News Steering::take_listeners() {
    const auto news = listeners_.take();
    bool is_moved = false;
    if (news != Listeners::News::none)
        for (const auto& resolved : parts_.listeners.current.placements().policies)
            is_moved |= spread_workers(resolved);
    // Who connects until the next look would stay with the worker of another lane for good.
    if (is_moved) listeners_.follow_workers();
    return news;
}

bool Steering::spread_workers(const planner::ResolvedPolicy& resolved) {
    const auto* plan = listeners_.plan_of(resolved.policy->name);
    if (plan == nullptr || plan->left.contains(planner::NotSteered::not_seen)) return false;
    std::map<TaskId, int> processes; // of each worker
    const auto worker_of = [&](const planner::ListenerTarget& target) -> std::optional<TaskId> {
        const auto* process = parts_.listeners.tasks.find(target.subject.process);
        if (process == nullptr) return std::nullopt;
        const auto* thread = process->threads.find(target.thread);
        const auto& worker = thread != nullptr && thread->seat.is_own ? thread->id : process->id;
        processes.emplace(worker, process->id.tid);
        return worker;
    };
    bool is_moved = false;
    for (const auto& workers : planner::servers_of(plan->targets, worker_of))
        for (const auto& move : planner::spread_workers(resolved, parts_.listeners.current.placements(),
                                                        parts_.assignments, workers)) {
            parts_.assignments.move(move.worker, move.table, move.from, move.to);
            parts_.look_again(processes[move.worker]);
            is_moved = true;
        }
    return is_moved;
}

void Steering::note(const locality::ReadCounts& found) {
    parts_.sampled(found);
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
