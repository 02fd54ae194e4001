// SPDX-License-Identifier: Apache-2.0
// The manager's work on processes and threads: one way for start, reconcile and events.
#include "app/lineage.hpp"
#include "app/manager.hpp"
#include "host/scheduler.hpp"
#include "inventory/head.hpp"
#include "inventory/scan.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using planner::ThreadPlan;

/// Programs that set masks of their own do so every few seconds; the longest rest is about ten minutes.
constexpr Truce::Terms truce_terms{.window = std::chrono::seconds(60), .first = std::chrono::seconds(10)};

bool is_in_place(const KnownProcess& process, const TaskId& id) {
    const auto at = process.threads.find(id.tid);
    return at != process.threads.end() && at->second.id == id &&
           at->second.state == ThreadPlan::State::in_place;
}

} // namespace

bool Manager::must_look_at(const inventory::Head& head, int creator) const {
    const int pid = head.id.tid;
    if (tasks_.find(pid) != nullptr || parts_.journal.is_giver(pid, creator)) return true;
    const auto& placements = world_->placements();
    // A kernel thread that served a queue and does no more is looked at once again, to get its mask back.
    if (head.is_kernel())
        return placements.threads.contains(pid) ||
               parts_.journal.find(planner::TaskMask{head.id, pid, {}}) != nullptr;
    return !placements.claimed.empty();
}

bool Manager::is_released(int pid, std::size_t policy) const {
    return !released_.empty() &&
           (released_.contains("*") || released_.contains(world_->policies().policies[policy].name) ||
            released_.contains(std::to_string(pid)));
}

void Manager::drop(int pid) {
    const auto* known = tasks_.find(pid);
    if (known == nullptr) return;
    assignments_.leave(known->id);
    for (const auto& [tid, thread] : known->threads)
        assignments_.leave(thread.id);
    tasks_.erase(pid);
}

std::optional<Turn> Manager::begin_turn(inventory::Head head, std::optional<int> creator) {
    const int pid = head.id.tid;
    const int parent = creator.value_or(head.facts->parent());
    if (const auto* known = tasks_.find(pid); known != nullptr && known->id != head.id) drop(pid);
    auto policy =
        world_->matcher().match(*head.facts, ProcessLineage(parts_.root, tasks_, world_->policies()));
    if (policy && is_released(pid, *policy)) policy.reset();
    if (!policy && !must_look_at(head, parent)) return std::nullopt;
    if (!policy) {
        drop(pid);
    } else {
        if (const auto* before = tasks_.find(pid); before != nullptr && before->policy != *policy) drop(pid);
        auto& known = tasks_.insert(head.id);
        known.comm = head.comm;
        known.policy = *policy;
        known.seen = reconciles_;
        if (world_->policies().policies[*policy].means == policy::Means::cpuset)
            learn_unit(known, head.facts->cgroup());
    }
    return Turn{std::move(head), parent, policy, inventory::TaskReader(parts_.root, pid, &sources_)};
}

bool Manager::go_on(Turn& turn, const std::function<bool()>& out_of_time) {
    const int pid = turn.head.id.tid;
    const auto leave = [&] {
        const bool left = out_of_time();
        turn.was_left |= left;
        return left;
    };
    if (!turn.is_read) {
        if (!turn.reader.step(leave)) return false;
        if (auto process = turn.reader.take()) turn.threads = std::move(process->threads);
        turn.is_read = true;
    }
    auto* known = tasks_.find(pid);
    // It may have ended meanwhile, or gone over to another policy: whoever told of that has done the rest.
    const bool is_under_it = known != nullptr && known->id == turn.head.id && known->policy == turn.policy;
    if (turn.policy ? !is_under_it : known != nullptr) return true;
    while (turn.next < turn.threads.size()) {
        const auto index = turn.next++;
        auto& thread = turn.threads[index];
        if (turn.was_left) {
            auto now = inventory::read_thread(parts_.root, pid, thread.id.tid);
            if (!now || now->id != thread.id) continue;
            thread = std::move(*now);
        }
        const planner::Unit unit{turn.head.id, &thread, static_cast<unsigned>(index),
                                 known == nullptr ? nullptr : &known->nics, cpuset_of(known, thread)};
        handle_thread(known, turn.policy, unit, thread.id == turn.head.id ? turn.parent : pid);
        if (turn.next < turn.threads.size() && leave()) return false;
    }
    finish_turn(turn);
    return true;
}

void Manager::finish_turn(const Turn& turn) {
    const int pid = turn.head.id.tid;
    auto* known = tasks_.find(pid);
    if (known == nullptr || turn.threads.empty()) return;
    std::vector<TaskId> seen, unseen;
    for (const auto& thread : turn.threads)
        seen.push_back(thread.id);
    std::ranges::sort(seen);
    for (const auto& [tid, thread] : known->threads)
        if (!std::ranges::binary_search(seen, thread.id)) unseen.push_back(thread.id);
    for (const auto& id : parts_.journal.threads(pid))
        if (!std::ranges::binary_search(seen, id)) unseen.push_back(id);
    forget_gone_threads(pid, unseen);
    learn_cpuset(*known); // so that it is watched
    follow_with_memory(*known);
}

void Manager::handle_process(inventory::Head head, std::optional<int> creator) {
    if (auto turn = begin_turn(std::move(head), creator)) go_on(*turn, [] { return false; });
}

void Manager::learn_cpuset(KnownProcess& process) {
    if (process.cpuset_read == reconciles_) return;
    const auto* cpuset = sources_.cpuset(process.id.tid);
    process.cpuset = cpuset == nullptr ? std::nullopt : std::optional(*cpuset);
    process.cpuset_read = reconciles_;
}

const CpuSet* Manager::cpuset_of(KnownProcess* process, const inventory::Thread& thread) {
    // A thread that may run everywhere is in no narrower cpuset, so that births wait for no file more.
    if (process == nullptr || thread.allowed.contains(world_->placements().online)) return nullptr;
    learn_cpuset(*process);
    return process->cpuset ? &*process->cpuset : nullptr;
}

void Manager::forget_thread(const TaskId& id, int pid) {
    assignments_.leave(id);
    if (const auto done = parts_.journal.forget(planner::TaskMask{id, pid, {}}); !done)
        parts_.log.error(done.error().to_string());
}

void Manager::forget_gone_threads(int pid, std::span<const TaskId> threads) {
    auto* known = tasks_.find(pid);
    for (const auto& id : threads) {
        if (parts_.enforcer.present(planner::TaskMask{id, pid, {}})) continue;
        forget_thread(id, pid);
        if (known == nullptr) continue;
        const auto at = known->threads.find(id.tid);
        if (at != known->threads.end() && at->second.id == id) known->threads.erase(at);
    }
}

void Manager::handle_thread(KnownProcess* process, std::optional<std::size_t> policy,
                            const planner::Unit& unit, int creator) {
    if (!unit.thread->is_kernel())
        executor_.adopt_newborn({unit.thread->id, unit.process.tid, unit.thread->comm}, unit.thread->allowed,
                                creator, world_->placements().online);
    planner::Unit asked = unit;
    asked.may_be_reset = expects_changes() && process != nullptr && is_in_place(*process, unit.thread->id);
    auto plan = planner::plan_thread(world_->placements(), assignments_, policy, asked, parts_.journal);
    KnownThread* known = nullptr;
    if (process != nullptr) {
        known = &process->threads[unit.thread->id.tid];
        if (known->id != unit.thread->id)
            *known =
                KnownThread{.id = unit.thread->id, .comm = {}, .wanted = {}, .present = {}, .outcome = {}};
        known->comm = unit.thread->comm;
        // A mask that the kernel may just have reset is not given way to before the pass that knows of it.
        if (!told_of_change_ || plan.state != ThreadPlan::State::yielded) known->state = plan.state;
        known->present = unit.thread->allowed;
        if (plan.target) known->wanted = plan.target->mask;
    }
    if (plan.action)
        handle_action(known, *plan.action);
    else if (parts_.journal.damaged() && plan.state == ThreadPlan::State::in_place && plan.target &&
             !known->present.contains(world_->placements().online))
        adopt_lost(planner::TaskMask{unit.thread->id, unit.process.tid, unit.thread->comm}, known->present,
                   world_->policies().policies[process->policy].name);
}

bool Manager::is_fought_over(KnownThread& known, const planner::Action& action) {
    if (expects_changes()) return false;
    const auto* held = parts_.journal.find(action.subject);
    if (held == nullptr || held->asked != action.to || action.restore) return false;
    const auto now = Truce::Clock::now();
    if (known.truce.holds(now)) return true;
    if (known.truce.correct(truce_terms, now)) tell_of_fight(parts_.log, action);
    return false;
}

void Manager::handle_action(KnownThread* known, const planner::Action& action) {
    if (known != nullptr && is_fought_over(*known, action)) return;
    const auto applied = executor_.run(action, world_->machine().topology);
    if (known == nullptr) return;
    known->outcome = applied.outcome;
    if (!enforcer::took_effect(applied.outcome)) return;
    known->state = planner::ThreadPlan::State::in_place;
    known->present = applied.granted;
}

void Manager::process_changed(int pid, std::optional<int> creator) {
    auto head = inventory::read_head(parts_.root, pid, &sources_);
    if (!head) return;
    ++fast_;
    const bool known = tasks_.find(pid) != nullptr;
    handle_process(std::move(*head), creator);
    // A process that came or left changes how many lanes its NICs need.
    const auto* now = tasks_.find(pid);
    if (known != (now != nullptr) && world_->asks_for_serving()) waits_(Urgency::soon);
}

void Manager::thread_changed(int pid, int tid) {
    KnownProcess* known = tasks_.find(pid);
    if (known == nullptr) return;
    const auto thread = inventory::read_thread(parts_.root, pid, tid);
    if (thread) handle_fresh_thread(*known, *thread);
}

void Manager::thread_renamed(int pid, int tid, std::string_view name) {
    KnownProcess* known = tasks_.find(pid);
    if (known == nullptr) return;
    const auto thread = known->threads.find(tid);
    if (thread == known->threads.end() || !parts_.root.is_live()) return thread_changed(pid, tid);
    auto allowed = host::get_affinity(tid);
    if (!allowed) return; // gone: its exit comes next
    handle_fresh_thread(
        *known,
        {.id = thread->second.id, .comm = std::string(name), .flags = 0, .allowed = std::move(*allowed)});
}

void Manager::handle_fresh_thread(KnownProcess& process, const inventory::Thread& thread) {
    ++fast_;
    // Threads come in the order of their ids: those before this one that are known give its index, if some
    // rule asks for it.
    const auto& rules = world_->policies().policies[process.policy].threads;
    const bool is_asked = std::ranges::any_of(rules, [](const auto& rule) { return rule.index.has_value(); });
    const auto index =
        is_asked ? std::distance(process.threads.begin(), process.threads.lower_bound(thread.id.tid)) : 0;
    handle_thread(
        &process, process.policy,
        {process.id, &thread, static_cast<unsigned>(index), &process.nics, cpuset_of(&process, thread)},
        process.id.tid);
}

void Manager::task_gone(int pid, int tid) {
    KnownProcess* known = tasks_.find(pid);
    if (known == nullptr) return;
    // As long as it waits to be collected.
    if (tid == pid || known->threads.size() < 2)
        costs_.see(known->id, world_->policies().policies[known->policy].name, true);
    const auto thread = known->threads.find(tid);
    if (thread != known->threads.end()) {
        forget_thread(thread->second.id, pid);
        known->threads.erase(thread);
    }
    // The main thread may end before the others: the process is gone with its last thread.
    if (!known->threads.empty()) return;
    assignments_.leave(known->id);
    tasks_.erase(pid);
    if (world_->asks_for_serving()) waits_(Urgency::soon);
}

} // namespace affinityd::app
