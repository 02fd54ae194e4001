// SPDX-License-Identifier: Apache-2.0
#include "app/explain_job.hpp"

#include "app/lineage.hpp"

namespace affinityd::app {

ExplainJob::ExplainJob(const Parts& parts, int pid, OwnedAnswer answer)
    : parts_(parts), pid_(pid), answer_(std::move(answer)), world_(parts.current.world) {}

bool ExplainJob::step(const OutOfTime& out_of_time) {
    if (!scan_ && !begin()) {
        answer_(fail("there is no such process", std::to_string(pid_)));
        return true;
    }
    if (!scan_->step(out_of_time)) return false;
    const auto threads = scan_->take_threads();
    if (!threads) {
        answer_(std::unexpected(threads.error()));
    } else {
        explain(*threads);
        answer_(status::answer(value_));
    }
    return true;
}

bool ExplainJob::begin() {
    auto scan = inventory::ProcessScan::open(parts_.root, pid_, &parts_.tasks.sources());
    if (!scan || !*scan) return false;
    scan_ = std::move(**scan);
    value_.pid = pid_;
    value_.comm = scan_->comm();
    value_.owner = scan_->facts().uid();
    consider();
    if (const auto* known = parts_.tasks.table().find(pid_)) value_.nics = known->nics;
    parts_.add_fence(scan_->id(), value_);
    return true;
}

void ExplainJob::consider() {
    const ProcessLineage lineage(parts_.root, parts_.tasks.table(), world_->policies());
    for (auto& verdict : world_->matcher().explain(scan_->facts(), lineage)) {
        const auto& policy = world_->policy(verdict.policy);
        if (verdict.matched) policy_ = verdict.policy;
        value_.considered.push_back({policy.name, policy.at, std::move(verdict)});
    }
    if (policy_) value_.policy = world_->policy(*policy_).name;
    value_.released = policy_ && !parts_.tasks.match(*scan_);
}

std::optional<policy::Position> ExplainJob::decided_by(const planner::ThreadPlan& plan) const {
    if (!plan.target) return std::nullopt;
    const auto& policy = world_->policy(plan.target->policy);
    const auto rule = plan.target->distribution.rule;
    return rule == 0 ? policy.at : policy.threads[rule - 1].at;
}

void ExplainJob::explain(const std::vector<inventory::Thread>& threads) {
    auto& tasks = parts_.tasks;
    const auto* known = tasks.table().find(pid_);
    const CpuSet* cpuset = policy_ ? tasks.sources().cpuset(pid_) : nullptr;
    const planner::ProcessView view{scan_->id(), policy_, known == nullptr ? nullptr : &known->nics, cpuset};
    auto assignments = tasks.placer().assignments(); // a copy: looking must not assign slots
    const auto planning = tasks.placer().planning(assignments);
    planner::plan_process(
        planning, view, threads, [&](const inventory::Thread& thread, const planner::ThreadPlan& plan) {
            status::ThreadExplanation one{thread, plan, {}, decided_by(plan), {}, {}};
            if (plan.target) one.reason = planner::reason_of(planning.placements, *plan.target);
            if (cpuset != nullptr) one.cpuset = *cpuset;
            if (const auto record = parts_.journal.find(machine::TaskMask{thread.id, pid_, {}}))
                one.original = record->original;
            value_.threads.push_back(std::move(one));
        });
}

} // namespace affinityd::app
