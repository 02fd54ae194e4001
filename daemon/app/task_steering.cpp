// SPDX-License-Identifier: Apache-2.0
#include "app/task_steering.hpp"

#include <algorithm>

namespace affinityd::app {

using planner::AtArrivals;

/// Null: its policy leaves its tasks where they are.
const planner::ResolvedPolicy* TaskSteering::steered_by(const KnownProcess& process) const {
    const auto& policy = parts_.current->policy(process.policy);
    if (policy.model != policy::Model::full || policy.steer != policy::Steer::tasks) return nullptr;
    if (process.is_elsewhere || parts_.releases.policy(policy.name) || parts_.releases.process(process.id))
        return nullptr;
    const auto* resolved = parts_.current.placements().find(policy.name);
    return resolved != nullptr && resolved->active ? resolved : nullptr;
}

void TaskSteering::note(const locality::ReadCounts& found) {
    for (const auto& count : found.counts) {
        const auto* process = parts_.tasks.find(count.pid);
        if (process == nullptr || !count.arrival || steered_by(*process) == nullptr) continue;
        const auto* thread = process->threads.find(count.thread);
        const bool is_own = thread != nullptr && thread->seat.is_own;
        const auto& task = is_own ? thread->id : process->id;
        auto& known = tasks_[task];
        known.process = process->id;
        known.arrivals[*count.arrival] += count.reads;
        known.reads += count.reads;
        while (known.reads > most_reads) {
            known.reads = 0;
            for (auto& [cpu, reads] : known.arrivals)
                known.reads += reads /= 2;
            std::erase_if(known.arrivals, [](const auto& one) { return one.second == 0; });
        }
        add_news(task);
    }
}

void TaskSteering::observe(const KnownProcess& process) {
    if (process.settling || tasks_.empty() || steered_by(process) == nullptr) return;
    if (tasks_.contains(process.id)) add_news(process.id);
    if (process.threads.size() < 2) return;
    for (const auto& thread : process.threads)
        if (thread.seat.is_own && tasks_.contains(thread.id)) add_news(thread.id);
}

void TaskSteering::add_news(const TaskId& task) {
    news_.insert(task);
    if (news_.size() == 1) parts_.has_news();
}

bool TaskSteering::step(const OutOfTime& out_of_time) {
    while (!news_.empty()) {
        const auto task = *news_.begin();
        news_.erase(news_.begin());
        if (const auto known = tasks_.find(task); known != tasks_.end()) decide(task, known->second);
        if (out_of_time()) return news_.empty();
    }
    return true;
}

void TaskSteering::decide(const TaskId& task, Known& known) {
    const auto* process = parts_.tasks.find(known.process.tid);
    if (process == nullptr || process->id != known.process || process->settling) return;
    const auto* resolved = steered_by(*process);
    if (resolved == nullptr) return;
    const auto slot = planner::slot_at_arrivals(*resolved, parts_.current.placements(), parts_.assignments,
                                                task, known.arrivals);
    known.state = slot.state;
    const auto now = Clock::now();
    if (!slot.move || now < known.movable) return;
    known.movable = now + between_moves;
    parts_.assignments.move(task, slot.move->table, slot.move->from, slot.move->to);
    known.state = AtArrivals::here;
    parts_.look_again(process->id.tid);
}

void TaskSteering::end_pass() {
    std::erase_if(tasks_, [this](const auto& one) {
        const auto* process = parts_.tasks.find(one.second.process.tid);
        if (process == nullptr || process->id != one.second.process || steered_by(*process) == nullptr)
            return true;
        if (one.first == process->id) return false;
        const auto* thread = process->threads.find(one.first.tid);
        return thread == nullptr || thread->id != one.first;
    });
}

bool TaskSteering::is_settled(const TaskId& task) const {
    const auto known = tasks_.find(task);
    return known != tasks_.end() && known->second.state == AtArrivals::here;
}

std::map<std::string, status::TasksAtArrivals, std::less<>> TaskSteering::states() const {
    std::map<std::string, status::TasksAtArrivals, std::less<>> states;
    for (const auto& [task, known] : tasks_) {
        const auto* process = parts_.tasks.find(known.process.tid);
        if (process != nullptr && process->id == known.process && steered_by(*process) != nullptr)
            ++states[parts_.current->policy(process->policy).name][known.state];
    }
    return states;
}

void TaskSteering::explain(const TaskId& process, status::ProcessExplanation& into) const {
    const auto* known = parts_.tasks.find(process.tid);
    if (known == nullptr || known->id != process || steered_by(*known) == nullptr) return;
    const auto note = [&](const TaskId& task) {
        const auto found = tasks_.find(task);
        if (found != tasks_.end()) ++into.receiving.tasks[found->second.state];
    };
    note(process);
    for (const auto& thread : known->threads)
        if (thread.seat.is_own && thread.id != process) note(thread.id);
    if (into.receiving.tasks.empty()) into.receiving.tasks[AtArrivals::unknown] = 1;
}

} // namespace affinityd::app
