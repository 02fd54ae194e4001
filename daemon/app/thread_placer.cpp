// SPDX-License-Identifier: Apache-2.0
#include "app/thread_placer.hpp"

#include "app/notices.hpp"

namespace affinityd::app {

namespace {

using State = planner::ThreadPlan::State;

bool is_in_place(const KnownProcess* process, const TaskId& id) {
    const auto* thread = process == nullptr ? nullptr : process->threads.find(id.tid);
    return thread != nullptr && thread->id == id && thread->state == State::in_place;
}

} // namespace

void ThreadPlacer::note(KnownProcess& process, const inventory::Thread& thread,
                        const planner::ThreadPlan& plan) {
    auto& known = process.threads.insert(thread.id);
    if (known.comm != thread.comm) known.comm = thread.comm;
    // The kernel may just have reset a mask: the pass that knows of it decides whether to give way.
    if (!changes_.is_fresh() || plan.state != State::yielded) known.state = plan.state;
    known.present = thread.allowed;
    if (plan.target) known.wanted = plan.target->mask;
}

void ThreadPlacer::apply(KnownThread* known, const planner::Action& action) {
    const auto carried = executor_.run(action, {current_->machine().topology, {}});
    if (!carried) return;
    log_notices(log_, carried->notices);
    const auto& applied = carried->applied;
    if (enforcer::took_effect(applied.outcome)) log_change(log_, action);
    if (known == nullptr) return;
    known->outcome = applied.outcome;
    if (!enforcer::took_effect(applied.outcome)) return;
    known->state = State::in_place;
    known->present = applied.granted.cpus();
}

void ThreadPlacer::place(KnownProcess* known, const planner::ProcessView& process,
                         const inventory::Thread& thread, unsigned index, int creator) {
    const machine::TaskMask subject{thread.id, process.id.tid, thread.comm};
    const auto& online = current_.placements().online;
    if (!thread.is_kernel())
        if (const auto done = executor_.record_inherited(subject, thread.allowed, creator, online); !done)
            log_.error(done.error().to_string()); // it is looked for again at the end
    const bool may_be_reset = changes_.expected() && is_in_place(known, thread.id);
    const auto plan = planner::plan_thread(planning(assignments_), process, {thread, index, may_be_reset});
    if (known != nullptr) note(*known, thread, plan);
    if (plan.forget) {
        if (const auto done = journal_.forget(subject); !done) log_.error(done.error().to_string());
    } else if (plan.action) {
        apply(known == nullptr ? nullptr : known->threads.find(thread.id.tid), *plan.action);
    } else if (lost_.searching() && plan.state == State::in_place && plan.target &&
               !thread.allowed.contains(online)) {
        lost_.assume_ours(subject, thread.allowed, current_->policy(*process.policy).name,
                          current_->machine().topology);
    }
}

} // namespace affinityd::app
