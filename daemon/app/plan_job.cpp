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
        if (!looking_) {
            const auto pid = pids_->next().value_or(std::nullopt);
            if (!pid) return true;
            begin(*pid);
        }
        if (looking_) {
            if (!plan(*looking_, out_of_time)) return false;
            looking_.reset();
        }
        if (out_of_time()) return false;
    }
}

void PlanJob::begin(int pid) {
    auto scan = inventory::ProcessScan::open(parts_.root, pid, &parts_.tasks.sources());
    if (!scan || !*scan) return;
    const auto policy = parts_.tasks.match(**scan);
    if (policy || parts_.tasks.must_look_at(**scan, (*scan)->parent()))
        looking_ = Looking{std::move(**scan), policy};
}

bool PlanJob::plan(Looking& looking, const OutOfTime& out_of_time) {
    if (!looking.is_read) {
        if (!looking.scan.step(out_of_time)) return false;
        if (auto threads = looking.scan.take_threads()) looking.threads = std::move(*threads);
        looking.is_read = true;
    }
    auto& tasks = parts_.tasks;
    const int pid = looking.scan.id().tid;
    const auto* known = tasks.table().find(pid);
    const planner::ProcessView view{looking.scan.id(), looking.policy,
                                    known == nullptr ? nullptr : &known->nics,
                                    looking.policy ? tasks.sources().cpuset(pid) : nullptr};
    const auto planning = tasks.placer().planning(assignments_);
    while (looking.next < looking.threads.size()) {
        const auto index = looking.next++;
        const auto plan =
            planner::plan_thread(planning, view, {looking.threads[index], static_cast<unsigned>(index)});
        if (plan.action) text_.add(*plan.action, looking.scan.facts().uid());
        if (out_of_time()) return false;
    }
    return true;
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
