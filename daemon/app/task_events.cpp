// SPDX-License-Identifier: Apache-2.0
// What Tasks does about the kernel's process events.
#include "app/tasks.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "inventory/lookup.hpp"

#include <algorithm>
#include <span>

namespace affinityd::app {

namespace {

/// A process is placed at once as far as that is quick; the rest of a large one waits until other events were
/// handled.
constexpr std::chrono::milliseconds at_once{1};

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

void leave(UnfinishedTurns& unfinished, uid_t person, Turn turn, TaskObserver& observer) {
    if (!unfinished.put(person, std::move(turn))) observer.missed();
    observer.work_left();
}

} // namespace

void Tasks::process_changed(int pid, const ProcessChange& change) {
    // A process that is named again and again keeps the progress of its turn, and gets another one
    // afterwards.
    if (!unfinished_.empty() && unfinished_.name_again(pid, change)) return;
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
    leave(unfinished_, sources_.starter(pid), std::move(*turn), parts_.observer);
}

bool Tasks::step(const OutOfTime& out_of_time) {
    const auto is_finished_with = [&](int pid, Turn turn) {
        const auto before = table_.policy_of(pid);
        const bool is_finished = go_on(turn, out_of_time);
        if (table_.policy_of(pid) != before) parts_.observer.came_or_went();
        if (!is_finished) {
            leave(unfinished_, unfinished_.taken_from(), std::move(turn), parts_.observer);
            return false;
        }
        unfinished_.finished();
        if (turn.is_incomplete) parts_.observer.missed();
        if (turn.again) process_changed(pid, *turn.again);
        return true;
    };
    while (!unfinished_.empty()) {
        auto next = unfinished_.take();
        const auto begun = EventQueue::Clock::now();
        const auto* name = std::get_if<UnfinishedTurns::Name>(&next);
        const int pid = name != nullptr ? name->pid : std::get<Turn>(next).scan.id().tid;
        bool is_finished = true;
        if (name != nullptr) {
            process_changed(pid, name->change);
            unfinished_.finished(); // or has gone among those that are under way
        } else {
            is_finished = is_finished_with(pid, std::get<Turn>(std::move(next)));
        }
        const auto now = EventQueue::Clock::now();
        events_.floods().spent(pid, now - begun, now);
        if (!is_finished || out_of_time()) break;
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
    // Its figures can be read as long as it waits to be collected.
    if (may_be_last) parts_.observer.ending(*known);
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
