// SPDX-License-Identifier: Apache-2.0
#include "app/explain_job.hpp"

#include "app/lineage.hpp"
#include "app/nic_notes.hpp"

#include <ctime>
#include <utility>

#include <poll.h>

namespace affinityd::app {

namespace {

constexpr std::chrono::milliseconds longest_wait{200};

} // namespace

ExplainJob::ExplainJob(const Parts& parts, int pid, OwnedAnswer answer)
    : parts_(parts), answer_(std::move(answer)) {
    value_.pid = pid;
}

bool ExplainJob::step(const OutOfTime& out_of_time) {
    if (!basis_.hold(parts_.current, parts_.tasks.placer().assignments())) {
        answer_(fail("the policies were reloaded meanwhile: ask again"));
        return true;
    }
    if (!scan_ && !begin()) {
        answer_(fail("there is no such process", std::to_string(value_.pid)));
        return true;
    }
    if (stage_ == Stage::consider && !consider(out_of_time)) return false;
    if (stage_ == Stage::read) {
        const auto done = read(out_of_time);
        if (!done) answer_(std::unexpected(done.error()));
        if (!done || !*done) return !done;
    }
    while (next_ < threads_.size()) {
        explain(next_++);
        if (out_of_time()) return false;
    }
    // What is left, and to send it all, is long enough for a slice of its own.
    if (std::exchange(stage_, Stage::send) != Stage::send) return false;
    answer_(status::finish(std::move(text_), value_));
    return true;
}

bool ExplainJob::begin() {
    auto scan = inventory::ProcessScan::open(parts_.root, value_.pid, &parts_.tasks.sources());
    if (!scan || !*scan) return false;
    scan_ = std::move(**scan);
    until_ = Clock::now() + longest_wait;
    value_.comm = scan_->comm();
    value_.owner = scan_->facts().uid();
    if (const auto* known = parts_.tasks.table().find(value_.pid)) {
        value_.nics = known->nics;
        value_.nics_note = nic_note(basis_.world(), *known);
    }
    text_.begin_list("threads");
    return true;
}

/// False: more of the process is to be read first.
bool ExplainJob::consider(const OutOfTime& out_of_time) {
    const auto facts = scan_->shared_facts();
    static_cast<void>(facts->listen_ports());
    while (facts->is_unfinished()) {
        facts->go_on();
        if (facts->is_unfinished() && out_of_time()) return false;
    }
    const ProcessLineage lineage(parts_.root, parts_.tasks.table(), basis_.world().policies());
    auto verdicts = basis_.world().matcher().explain(*facts, lineage);
    if (facts->is_silent() && await_answer()) return false;
    stage_ = Stage::read;
    for (auto& verdict : verdicts) {
        const auto& policy = basis_.world().policy(verdict.policy);
        if (verdict.matched) policy_ = verdict.policy;
        value_.considered.push_back({policy.name, policy.match_at, std::move(verdict)});
    }
    if (policy_) value_.policy = basis_.world().policy(*policy_).name;
    parts_.add_rest(scan_->id(), value_); // which depends on its policy
    value_.released = serves_released_queue(*scan_, basis_.world().placements(), parts_.releases) ||
                      (policy_ && !parts_.tasks.match(*scan_));
    return true;
}

/// On a busy machine the command line of a process comes later than the loop waits for it. True: the process
/// is to be considered again.
bool ExplainJob::await_answer() {
    auto* lines = parts_.tasks.sources().command_lines();
    if (lines == nullptr || Clock::now() >= until_) return false;
    constexpr timespec patience{0, 100'000};
    pollfd late{lines->fd(), POLLIN, 0}; // the loop takes the answer
    ::ppoll(&late, 1, &patience, nullptr);
    auto scan = inventory::ProcessScan::open(parts_.root, value_.pid, &parts_.tasks.sources());
    if (!scan || !*scan || (*scan)->id() != scan_->id()) return false; // it has ended
    scan_ = std::move(**scan);
    return true;
}

Result<bool> ExplainJob::read(const OutOfTime& out_of_time) {
    if (!scan_->step(out_of_time)) return false;
    auto threads = scan_->take_threads();
    if (!threads) return std::unexpected(threads.error());
    threads_ = std::move(*threads);
    stage_ = Stage::explain;
    return true;
}

/// Where the file says what becomes of a thread: its thread rule, or the policy's `match`.
std::optional<policy::Position> ExplainJob::decided_by(std::size_t index,
                                                       const planner::ThreadPlan& plan) const {
    const auto& thread = threads_[index];
    if (!policy_ || thread.is_immovable()) return std::nullopt;
    const auto& policy = basis_.world().policy(*policy_);
    // A lane or a group is the policy's even for a thread that a rule names.
    if (plan.target) {
        const auto rule = plan.target->distribution.rule;
        return rule == 0 ? policy.match_at : policy.threads[rule - 1].at;
    }
    const auto rule = planner::rule_of(policy, thread.comm, static_cast<unsigned>(index),
                                       parts_.tasks.placer().joined(thread.id));
    const bool is_the_rules =
        plan.untouched == planner::NoPlace::leave || plan.untouched == planner::NoPlace::outside;
    return rule && is_the_rules ? policy.threads[*rule].at : policy.match_at;
}

void ExplainJob::explain(std::size_t index) {
    auto& tasks = parts_.tasks;
    const auto& thread = threads_[index];
    const auto* known = tasks.table().find(value_.pid);
    if (known != nullptr && known->id != scan_->id()) known = nullptr;
    const CpuSet* cpuset = tasks.sources().cpuset(value_.pid);
    auto view = view_of(scan_->id(), policy_, known);
    view.cpuset = cpuset;
    const int creator = thread.id == scan_->id() ? scan_->parent() : value_.pid;
    status::ThreadExplanation value{
        .thread = thread,
        .plan = tasks.placer().plan(known, {view, thread, static_cast<unsigned>(index), creator},
                                    basis_.assignments())};
    if (value_.released) value.plan.action.reset(); // nobody changes it until it is taken back
    value.decided_by = decided_by(index, value.plan);
    if (policy_) {
        const auto& policy = basis_.world().policy(*policy_);
        const auto* joined = tasks.placer().joined(thread.id);
        value.rule = planner::rule_of(policy, thread.comm, static_cast<unsigned>(index), joined);
        if (planner::is_in_force(policy, joined)) value.joined = *joined;
    }
    if (value.plan.kept_off && !value_.released) value_.kept_off = value.plan.kept_off;
    if (value.plan.target) value.reason = planner::reason_of(basis_.world().placements(), *value.plan.target);
    if (cpuset != nullptr) value.cpuset = *cpuset;
    if (const auto record = parts_.journal.find(machine::TaskMask{thread.id, value_.pid, {}}))
        value.original = record->original;
    text_.add(value, value_);
}

} // namespace affinityd::app
