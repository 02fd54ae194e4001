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
using std::chrono::steady_clock;

/// A mask that is changed by somebody else this often within the window is fought over: then we wait, longer each time.
constexpr unsigned fight_threshold = 5;
constexpr std::chrono::seconds fight_window{60};
constexpr std::chrono::seconds first_truce{10};
constexpr unsigned longest_truce = 6; ///< doublings: about ten minutes

} // namespace

bool Manager::must_look_at(const inventory::Head& head, int creator) const {
    const int pid = head.id.tid;
    if (tasks_.find(pid) != nullptr || parts_.journal.is_giver(pid, creator)) return true;
    const auto& placements = world_->placements();
    if (head.is_kernel()) return placements.threads.contains(pid);
    return !placements.claimed.empty();
}

bool Manager::is_released(int pid, std::size_t policy) const {
    return !released_.empty() && (released_.contains("*") || released_.contains(world_->policies().policies[policy].name) ||
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

void Manager::handle_process(const inventory::Head& head, std::optional<int> creator) {
    const int pid = head.id.tid;
    const int parent = creator.value_or(head.facts->parent());
    if (const auto* known = tasks_.find(pid); known != nullptr && known->id != head.id) drop(pid);
    auto policy = world_->matcher().match(*head.facts, ProcessLineage(parts_.root, tasks_, world_->policies()));
    if (policy && is_released(pid, *policy)) policy.reset();
    if (!policy && !must_look_at(head, parent)) return;

    KnownProcess* known = nullptr;
    if (policy) {
        if (const auto* before = tasks_.find(pid); before != nullptr && before->policy != *policy) drop(pid);
        known = &tasks_.insert(head.id);
        known->comm = head.comm;
        known->policy = *policy;
        known->seen = reconciles_;
        if (world_->policies().policies[*policy].means == policy::Means::cpuset) learn_unit(*known, head.facts->cgroup());
    }
    const auto threads = inventory::read_threads(parts_.root, pid);
    for (std::size_t i = 0; i < threads.size(); ++i) {
        const planner::Unit unit{head.id, &threads[i], static_cast<unsigned>(i), known == nullptr ? nullptr : &known->nics,
                                 cpuset_of(known, threads[i])};
        handle_thread(known, policy, unit, threads[i].id == head.id ? parent : pid);
    }
    if (known == nullptr) {
        drop(pid);
        return;
    }
    std::erase_if(known->threads, [&](const auto& entry) {
        const bool gone = std::ranges::find(threads, entry.second.id, &inventory::Thread::id) == threads.end();
        if (gone) forget_thread(entry.second.id, pid);
        return gone;
    });
    follow_with_memory(*known);
}

const CpuSet* Manager::cpuset_of(KnownProcess* process, const inventory::Thread& thread) {
    // A thread that may run everywhere is in no narrower cpuset, so that births cost no file more.
    if (process == nullptr || thread.allowed.contains(world_->placements().online)) return nullptr;
    if (process->cpuset_read != reconciles_) {
        const auto* cpuset = sources_.cpuset(process->id.tid);
        process->cpuset = cpuset == nullptr ? std::nullopt : std::optional(*cpuset);
        process->cpuset_read = reconciles_;
    }
    return process->cpuset ? &*process->cpuset : nullptr;
}

void Manager::forget_thread(const TaskId& id, int pid) {
    assignments_.leave(id);
    if (const auto done = parts_.journal.forget(planner::TaskMask{id, pid, {}}); !done) parts_.log.error(done.error().to_string());
}

void Manager::handle_thread(KnownProcess* process, std::optional<std::size_t> policy, const planner::Unit& unit, int creator) {
    if (!unit.thread->is_kernel())
        executor_.adopt_newborn({unit.thread->id, unit.process.tid, unit.thread->comm}, unit.thread->allowed, creator,
                                world_->placements().online);
    auto plan = planner::plan_thread(world_->placements(), assignments_, policy, unit, parts_.journal);
    KnownThread* known = nullptr;
    if (process != nullptr) {
        known = &process->threads[unit.thread->id.tid];
        if (known->id != unit.thread->id) *known = KnownThread{.id = unit.thread->id, .comm = {}, .outcome = {}, .wanted = {}, .present = {}};
        known->comm = unit.thread->comm;
        known->state = plan.state;
        known->present = unit.thread->allowed;
        if (plan.target) known->wanted = plan.target->mask;
    }
    if (plan.action) handle_action(known, *plan.action);
}

bool Manager::is_fought_over(KnownThread& known, const planner::Action& action) {
    const auto* held = parts_.journal.find(action.subject);
    if (held == nullptr || held->asked != action.to || action.restore) return false;
    const auto now = steady_clock::now();
    if (now < known.quiet_until) return true;
    if (now - std::max(known.last_correction, known.quiet_until) > fight_window) known.corrections = 0;
    known.last_correction = now;
    if (++known.corrections < fight_threshold) return false;
    // Put right once more, then not before the truce is over.
    known.quiet_until = now + first_truce * (1U << std::min(known.corrections - fight_threshold, longest_truce));
    parts_.log.warn(fmt::format("{}: somebody else keeps changing its mask (now {}): left alone for a while",
                                planner::to_string(action.subject), action.from.to_list()));
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
    const auto head = inventory::read_head(parts_.root, pid, &sources_);
    if (!head) return;
    ++fast_;
    const bool known = tasks_.find(pid) != nullptr;
    handle_process(*head, creator);
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
    handle_fresh_thread(*known, {.id = thread->second.id, .comm = std::string(name), .flags = 0, .allowed = std::move(*allowed)});
}

void Manager::handle_fresh_thread(KnownProcess& process, const inventory::Thread& thread) {
    ++fast_;
    // Threads come in the order of their ids: those before this one that are known give its index.
    const auto index = std::distance(process.threads.begin(), process.threads.lower_bound(thread.id.tid));
    handle_thread(&process, process.policy,
                  {process.id, &thread, static_cast<unsigned>(index), &process.nics, cpuset_of(&process, thread)}, process.id.tid);
}

void Manager::task_gone(int pid, int tid) {
    KnownProcess* known = tasks_.find(pid);
    if (known == nullptr) return;
    // As long as it waits to be collected.
    if (tid == pid || known->threads.size() < 2) costs_.see(known->id, world_->policies().policies[known->policy].name, true);
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
