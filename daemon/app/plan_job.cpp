// SPDX-License-Identifier: Apache-2.0
#include "app/plan_job.hpp"

#include "planner/balance.hpp"

#include <utility>

namespace affinityd::app {

PlanJob::PlanJob(const Parts& parts, OwnedAnswer answer) : parts_(parts), answer_(std::move(answer)) {
    text_.begin_list("actions");
}

bool PlanJob::step(const OutOfTime& out_of_time) {
    if (!basis_.hold(parts_.current, parts_.tasks.placer().assignments())) {
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
    // What is left, and to send it all, is long enough for a slice of its own.
    if (!std::exchange(is_listed_, true)) return false;
    const auto& placements = basis_.world().placements();
    const auto crowdings = planner::crowdings(placements, basis_.assignments());
    answer_(status::finish_plan(std::move(text_), placements.problems,
                                crowdings.empty() ? nullptr : &crowdings.front()));
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
    looking_ = Looking{std::move(**scan)};
    if (!decide(*looking_)) looking_.reset();
}

/// Finds the policy that wants it, if that is known yet. False: it need not be looked at.
bool PlanJob::decide(Looking& looking) {
    const auto& scan = looking.scan;
    const auto policy = parts_.tasks.match(scan);
    if (scan.facts().is_unfinished()) return true;
    if (!policy && !parts_.tasks.must_look_at(scan, scan.parent())) return false;
    looking.policy = policy;
    // The pass would drop what is known of another process, or of one that was under another policy.
    const auto* known = parts_.tasks.table().find(scan.id().tid);
    if (known == nullptr || (known->id == scan.id() && known->policy == policy)) return true;
    basis_.assignments().leave(known->id);
    for (const auto& thread : known->threads)
        basis_.assignments().leave(thread.id);
    return true;
}

bool PlanJob::plan(Looking& looking, const OutOfTime& out_of_time) {
    if (const auto& facts = looking.scan.shared_facts(); facts->is_unfinished()) {
        while (facts->is_unfinished()) {
            facts->go_on();
            if (facts->is_unfinished() && out_of_time()) return false;
        }
        if (!decide(looking)) return true;
    }
    if (!looking.is_read) {
        if (!looking.scan.step(out_of_time)) return false;
        if (auto threads = looking.scan.take_threads()) looking.threads = std::move(*threads);
        looking.is_read = true;
    }
    auto& tasks = parts_.tasks;
    const auto id = looking.scan.id();
    // Slices of events lie between those of this job.
    const auto* known = tasks.table().find(id.tid);
    if (known != nullptr && (known->id != id || known->policy != looking.policy)) known = nullptr;
    static const std::vector<std::string> none;
    auto view = view_of(id, looking.policy, known);
    if (looking.policy && known == nullptr) view.nics = &none;
    while (looking.next < looking.threads.size()) {
        const auto index = looking.next++;
        const auto& thread = looking.threads[index];
        const bool is_whole = thread.allowed.contains(basis_.world().placements().online);
        view.cpuset = is_whole ? nullptr : tasks.sources().cpuset(id.tid);
        const int creator = thread.id == id ? looking.scan.parent() : id.tid;
        const auto plan = tasks.placer().plan(known, {view, thread, static_cast<unsigned>(index), creator},
                                              basis_.assignments());
        if (plan.action) text_.add(*plan.action, looking.scan.facts().uid());
        if (out_of_time()) return false;
    }
    return true;
}

bool PlanJob::step_queues(const OutOfTime& out_of_time) {
    // A copy: they may be worked out anew between two slices.
    if (!targets_) targets_ = basis_.world().placements().queues;
    while (next_queue_ < targets_->size()) {
        const auto action = parts_.queues.plan((*targets_)[next_queue_++]);
        if (action) text_.add(*action, OwnedText::no_owner);
        if (out_of_time()) return false;
    }
    if (!unwanted_) unwanted_ = parts_.queues.unwanted();
    while (!unwanted_->empty()) {
        if (const auto action = parts_.queues.plan_restore(unwanted_->back()))
            text_.add(*action, OwnedText::no_owner);
        unwanted_->pop_back();
        if (out_of_time()) return false;
    }
    return true;
}

} // namespace affinityd::app
