// SPDX-License-Identifier: Apache-2.0
#include "app/plan_job.hpp"

namespace affinityd::app {

PlanJob::PlanJob(const Parts& parts, OwnedAnswer answer)
    : parts_(parts), answer_(std::move(answer)), world_(parts.current.world),
      assignments_(parts_.tasks.placer().assignments()) {
    text_.begin_list("actions");
}

bool PlanJob::step(const OutOfTime& out_of_time) {
    if (world_ != parts_.current.world) {
        answer_(fail("the policies were reloaded meanwhile: ask again"));
        return true;
    }
    if (!pids_) {
        auto pids = inventory::PidStream::open(parts_.root);
        if (!pids) {
            answer_(std::unexpected(pids.error()));
            return true;
        }
        pids_ = std::move(*pids);
    }
    if (!step_tasks(out_of_time) || !step_queues(out_of_time)) return false;
    answer_(status::finish_plan(std::move(text_), world_->placements().problems));
    return true;
}

bool PlanJob::step_tasks(const OutOfTime& out_of_time) {
    while (true) {
        if (!scan_) {
            const auto pid = pids_->next();
            if (!pid) return true;
            begin(*pid);
        }
        if (scan_) {
            if (!scan_->step(out_of_time)) return false;
            if (const auto threads = scan_->take_threads()) plan(*threads);
            scan_.reset();
        }
        if (out_of_time()) return false;
    }
}

void PlanJob::begin(int pid) {
    auto scan = inventory::ProcessScan::open(parts_.root, pid, &parts_.tasks.sources());
    if (!scan || !*scan) return;
    policy_ = parts_.tasks.match(**scan);
    if (policy_ || parts_.tasks.must_look_at(**scan, (*scan)->parent())) scan_ = std::move(**scan);
}

void PlanJob::plan(const std::vector<inventory::Thread>& threads) {
    auto& tasks = parts_.tasks;
    const int pid = scan_->id().tid;
    const auto* known = tasks.table().find(pid);
    const planner::ProcessView view{scan_->id(), policy_, known == nullptr ? nullptr : &known->nics,
                                    policy_ ? tasks.sources().cpuset(pid) : nullptr};
    planner::plan_process(tasks.placer().planning(assignments_), view, threads,
                          [&](const inventory::Thread&, const planner::ThreadPlan& plan) {
                              if (plan.action) text_.add(*plan.action, scan_->facts().uid());
                          });
}

bool PlanJob::step_queues(const OutOfTime& out_of_time) {
    const auto& targets = world_->placements().queues;
    while (next_queue_ < targets.size()) {
        const auto action = parts_.queues.plan(targets[next_queue_++]);
        if (action) text_.add(*action, OwnedText::no_owner);
        if (out_of_time()) return false;
    }
    return true;
}

} // namespace affinityd::app
