// SPDX-License-Identifier: Apache-2.0
// What Tasks does about the kernel's process events.
#include "app/tasks.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <span>

namespace affinityd::app {

namespace {

/// A process is placed at once as far as that is quick; the rest of a large one waits until other events were
/// handled.
constexpr std::chrono::milliseconds at_once{1};
constexpr std::size_t most_unfinished = 16;

/// What an event named cannot be read.
void miss(const Tasks::Parts& parts, int pid, const Error& why) {
    parts.log.error(why.to_string(), {"process not read", pid});
    parts.observer.missed();
}

/// The main thread has ended before the others: it is the process by its number, and one of the others takes
/// that over when it runs another program. So its record stays, and the slots of the process.
void lose_main(KnownProcess& process, const std::string& policy, planner::Assignments& assignments) {
    const auto* thread = process.threads.find(process.id.tid);
    if (thread == nullptr) return;
    process.has_lost_main = true;
    const planner::DistributionId groups{policy, 0, "", planner::DistributionId::Kind::groups};
    if (thread->seat.is_own) assignments.leave_others(process.id, std::span(&groups, 1));
    process.threads.erase(process.id.tid);
}

} // namespace

void Tasks::process_changed(int pid, const ProcessChange& change) {
    // A process that is named again and again keeps the progress of its turn, and gets another one
    // afterwards.
    const auto under_way =
        std::ranges::find(unfinished_, pid, [](const Turn& turn) { return turn.scan.id().tid; });
    if (under_way != unfinished_.end()) {
        auto& again = under_way->again;
        if (!again) again = change;
        if (change.creator) again->creator = change.creator;
        again->is_executed |= change.is_executed;
        again->has_changed |= change.has_changed;
        return;
    }
    auto scan = inventory::ProcessScan::open(parts_.root, pid, &sources_);
    if (!scan) return miss(parts_, pid, scan.error());
    if (!*scan) { // the ends of its threads may not have been told one by one
        events_.later().forget(pid);
        if (table_.find(pid) != nullptr) parts_.observer.missed();
        return;
    }
    events_.count_handled();
    const auto before = table_.policy_of(pid);
    parts_.observer.named(**scan);
    auto turn = begin_turn(**scan, change);
    const auto& facts = (turn ? turn->scan : **scan).facts();
    const auto tell_if_it_moved = [&] {
        if (table_.policy_of(pid) != before) parts_.observer.came_or_went();
    };
    if (!facts.is_complete() && !facts.is_silent()) parts_.observer.missed();
    settling_.look_later(facts, turn ? turn->policy : std::nullopt, change.has_changed);
    if (!turn) return tell_if_it_moved();
    const auto until = std::chrono::steady_clock::now() + at_once;
    const bool is_finished = go_on(*turn, [&] { return std::chrono::steady_clock::now() >= until; });
    tell_if_it_moved(); // also one whose facts were read to their end only now
    if (is_finished) {
        if (turn->is_incomplete) parts_.observer.missed();
        return;
    }
    if (unfinished_.size() >= most_unfinished) return parts_.observer.missed();
    turn->person = sources_.starter(pid);
    unfinished_.push_back(std::move(*turn));
    parts_.observer.work_left();
}

bool Tasks::step(const OutOfTime& out_of_time) {
    auto& budget = events_.budget();
    while (!unfinished_.empty()) {
        Turn turn = std::move(unfinished_.front());
        unfinished_.pop_front();
        const auto begun = Budget::Clock::now();
        if (budget.is_spent(turn.person, begun)) {
            parts_.observer.missed();
            continue;
        }
        const int pid = turn.scan.id().tid;
        const auto before = table_.policy_of(pid);
        const bool is_finished = go_on(turn, out_of_time);
        const auto now = Budget::Clock::now();
        budget.charge(turn.person, now - begun, now);
        if (table_.policy_of(pid) != before) parts_.observer.came_or_went();
        if (!is_finished) {
            unfinished_.push_front(std::move(turn));
            return false;
        }
        if (turn.is_incomplete) parts_.observer.missed();
        if (turn.again) process_changed(pid, *turn.again);
        if (out_of_time()) break;
    }
    return unfinished_.empty();
}

void Tasks::process_moved(int pid) {
    if (auto* known = table_.find(pid)) known->cpuset = {};
    process_changed(pid);
}

void Tasks::thread_changed(int pid, int tid) {
    KnownProcess* known = table_.find(pid);
    if (known == nullptr) return;
    const auto thread = inventory::read_thread(parts_.root, pid, tid);
    if (!thread) return miss(parts_, pid, thread.error());
    if (!*thread) return;
    place_fresh(*known, **thread);
    settling_.made_threads(*known, (*thread)->id.start_time);
}

void Tasks::thread_renamed(int pid, int tid, std::string_view name) {
    KnownProcess* known = table_.find(pid);
    if (known == nullptr) return;
    const auto* thread = known->threads.find(tid);
    if (thread == nullptr || missing_until_ != 0 || !parts_.root.is_live()) return thread_changed(pid, tid);
    auto allowed = host::get_affinity(tid);
    if (!allowed) return; // gone: its exit comes next
    place_fresh(*known,
                {.id = thread->id, .comm = std::string(name), .flags = 0, .allowed = std::move(*allowed)});
}

void Tasks::place_fresh(KnownProcess& process, const inventory::Thread& thread) {
    events_.count_handled();
    // One that was told to let go stays known until the next pass.
    if (parts_.releases.covers(parts_.current->policy(process.policy).name, process.id)) return;
    // Threads come in the order of their ids: those before this one that are known give its index, if some
    // rule asks for it.
    const auto& rules = parts_.current->policy(process.policy).threads;
    const bool is_asked = std::ranges::any_of(rules, [](const auto& rule) { return rule.index.has_value(); });
    const auto index = is_asked ? process.threads.count_below(thread.id.tid) : 0;
    const int pid = process.id.tid;
    auto view = view_of(process.id, process.policy, &process);
    view.cpuset = cpuset_of(process.cpuset, pid, thread);
    placer_.place(&process, {view, thread, static_cast<unsigned>(index), pid});
}

void Tasks::task_gone(int pid, int tid) {
    KnownProcess* known = table_.find(pid);
    if (known == nullptr) return;
    const bool may_be_last = tid == pid || known->threads.size() < 2;
    const bool lives_on = may_be_last && inventory::lives_on(parts_.root, known->id);
    if (tid == pid && lives_on)
        return lose_main(*known, parts_.current->policy(known->policy).name, placer_.assignments());
    if (const auto* thread = known->threads.find(tid)) {
        placer_.ended(thread->id);
        reaper_.bury(thread->id, pid, placer_.assignments());
        known->threads.erase(tid);
    }
    // The process is gone with its last thread.
    if (!known->threads.empty() || lives_on) return;
    reaper_.bury(known->id, pid, placer_.assignments());
    parts_.releases.forget(known->id);
    events_.later().forget(pid);
    drop(pid);
    parts_.observer.came_or_went();
}

} // namespace affinityd::app
