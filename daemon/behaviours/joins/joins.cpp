// SPDX-License-Identifier: Apache-2.0
#include "behaviours/list.hpp"
#include "inventory/process_files.hpp"
#include "planner/arrivals.hpp"
#include "planner/matcher.hpp"
#include "policy/policy.hpp"

#include <memory>
#include <utility>

namespace affinityd::behaviours {

namespace {

using Wish = JoinRequest::Wish;
using State = planner::ThreadPlan::State;

bool is_placed(const KnownThread& thread) { return thread.state == State::in_place; }

/// Threads that put themselves somewhere, as far as the policy of their process lets them. Joins notes the
/// request as a fact about the thread, like its name, and the way of tasks places the thread.
///
/// A place lasts until the thread ends, leaves, or its process comes under another policy or is released, or
/// the daemon ends; execve(2), passes and reloads come and go meanwhile. Where a reload takes the slot away
/// it has no force until the slot is back.
class Joins final : public Behaviour, public Joining {
  public:
    /// References must outlive it.
    explicit Joins(Daemon& daemon)
        : shared_(daemon.shared()), current_(shared_.current), tasks_(daemon.tasks()) {}

    JoinAnswer ask(const JoinRequest& request) override;
    bool may_ask(uid_t user) override { return tasks_.may_ask(user); }
    void charge(uid_t user, std::chrono::nanoseconds time) override { tasks_.charge(user, time); }
    void begin_stop(bool) override { is_stopping_ = true; }
    Joining* joining() override { return this; }

  private:
    struct Asking;
    using Wanted = std::shared_ptr<const planner::Joined>; ///< null: nothing
    [[nodiscard]] JoinOutcome find_asker(Asking& asking);
    [[nodiscard]] bool is_released(int pid) const;
    [[nodiscard]] KnownProcess* find_process(Asking& asking);
    [[nodiscard]] JoinOutcome carry_out(Asking& asking);
    [[nodiscard]] JoinOutcome join(const Asking& asking);
    [[nodiscard]] JoinOutcome serve(const Asking& asking);
    [[nodiscard]] JoinOutcome move_to(const Asking& asking, unsigned cpu);
    [[nodiscard]] Wanted find(const Asking& asking) const;
    [[nodiscard]] const KnownThread* place(const Asking& asking, Wanted wanted);
    [[nodiscard]] const KnownThread* place(const Asking& asking);

    Shared& shared_;
    const Current& current_;
    Tasks& tasks_;
    bool is_stopping_ = false;
};

/// A request, with what was found of who asks.
struct Joins::Asking {
    const JoinRequest& request;
    inventory::Thread thread{};
    TaskId process{};
    std::size_t policy = 0; ///< index into the world's set
};

JoinAnswer Joins::ask(const JoinRequest& request) {
    if (is_stopping_ || !current_.world) return {.outcome = JoinOutcome::no_daemon};
    Asking asking{request};
    JoinAnswer answer{.outcome = find_asker(asking)};
    if (answer.outcome != JoinOutcome::done) return answer;
    answer.policy = current_->policy(asking.policy).name;
    answer.outcome = carry_out(asking);
    const auto joined = find(asking);
    if (!planner::is_in_force(current_->policy(asking.policy), joined.get())) return answer;
    answer.slot = joined->slot;
    answer.serves = joined->serves;
    return answer;
}

/// Finds the thread that asks. The kernel has said which process; that the thread is one of its own, the path
/// by which it is read says.
JoinOutcome Joins::find_asker(Asking& asking) {
    const auto& request = asking.request;
    auto tid = request.tid;
    if (request.own_pid != request.pid) {
        tid = request.tid == request.own_pid
                  ? request.pid
                  : inventory::thread_by_own_number(shared_.root, request.pid, request.tid).value_or(0);
    }
    if (tid <= 0) return JoinOutcome::not_yours;
    auto thread = inventory::read_thread(shared_.root, request.pid, tid);
    if (!thread || !*thread) return JoinOutcome::not_yours;
    asking.thread = std::move(**thread);
    const auto* process = find_process(asking);
    // If the process still is there, it is the one that was read since it asked.
    if (request.is_alive && !request.is_alive()) return JoinOutcome::not_yours;
    if (process == nullptr) return is_released(request.pid) ? JoinOutcome::released : JoinOutcome::no_policy;
    asking.process = process->id;
    asking.policy = process->policy;
    return JoinOutcome::done;
}

/// Some policy would want it, if it, or the policy, had not been let go by hand.
bool Joins::is_released(int pid) const {
    if (shared_.releases.empty()) return false;
    const auto scan = inventory::ProcessScan::open(shared_.root, pid, &tasks_.sources());
    if (!scan || !*scan) return false;
    const auto& world = *current_.world;
    const ProcessLineage lineage(shared_.root, tasks_.table(), world.policies());
    return world.matcher().match((*scan)->facts(), lineage).has_value();
}

/// Null: no policy wants it.
KnownProcess* Joins::find_process(Asking& asking) {
    auto& table = tasks_.table();
    const int pid = asking.request.pid;
    const auto is_that = [&](const KnownProcess* known) {
        return known != nullptr &&
               (asking.thread.id.tid == pid ? known->id == asking.thread.id
                                            : inventory::lives_on(shared_.root, known->id));
    };
    if (auto* known = table.find(pid); is_that(known)) return known;
    // The event of its execve(2) may not have been looked at yet.
    tasks_.process_changed(pid);
    auto* known = table.find(pid);
    return is_that(known) ? known : nullptr;
}

JoinOutcome Joins::carry_out(Asking& asking) {
    const auto& policy = current_->policy(asking.policy);
    switch (asking.request.wish) {
    case Wish::where:
        return JoinOutcome::done;
    case Wish::leave:
        if (find(asking) != nullptr) static_cast<void>(place(asking, nullptr));
        return JoinOutcome::done;
    case Wish::join:
        if (asking.request.slot == policy::arrivals_slot || !planner::may_join(policy, asking.request.slot))
            return JoinOutcome::not_allowed;
        break;
    case Wish::serve:
        if (!planner::may_join(policy, policy::arrivals_slot)) return JoinOutcome::not_allowed;
        break;
    }
    if (shared_.releases.covers(policy.name, asking.process)) return JoinOutcome::released;
    return asking.request.wish == Wish::join ? join(asking) : serve(asking);
}

Joins::Wanted Joins::find(const Asking& asking) const {
    const auto* known = tasks_.table().find(asking.process.tid, asking.thread.id);
    return known == nullptr ? nullptr : known->joined;
}

/// The way of tasks, as after an event that names the thread. Null: it has ended meanwhile.
const KnownThread* Joins::place(const Asking& asking) {
    tasks_.thread_changed(asking.process.tid, asking.thread.id.tid);
    return tasks_.table().find(asking.process.tid, asking.thread.id);
}

const KnownThread* Joins::place(const Asking& asking, Wanted wanted) {
    if (auto* process = tasks_.table().find(asking.process.tid))
        process->threads.insert(asking.thread.id).joined = std::move(wanted);
    return place(asking);
}

JoinOutcome Joins::join(const Asking& asking) {
    const auto& policy = current_->policy(asking.policy);
    const planner::Joined wanted{policy.name, asking.request.slot, false};
    const auto* thread = place(asking, std::make_shared<const planner::Joined>(wanted));
    if (thread == nullptr) return JoinOutcome::not_yours;
    const auto rule = planner::rule_of(policy, thread->comm, 0, &wanted);
    const bool is_left_alone = rule && policy.threads[*rule].leave;
    return is_placed(*thread) || is_left_alone ? JoinOutcome::done : JoinOutcome::put_off;
}

JoinOutcome Joins::serve(const Asking& asking) {
    const auto before = find(asking);
    const auto& name = current_->policy(asking.policy).name;
    auto wanted = before && before->policy == name ? *before : planner::Joined{name, {}, false};
    wanted.serves = true;
    const bool is_new = !before || *before != wanted;
    static_cast<void>(place(asking, std::make_shared<const planner::Joined>(std::move(wanted))));
    const auto outcome = move_to(asking, asking.request.cpu);
    const bool is_refused = outcome != JoinOutcome::done && outcome != JoinOutcome::put_off;
    if (is_refused && is_new) static_cast<void>(place(asking, before));
    return outcome;
}

JoinOutcome Joins::move_to(const Asking& asking, unsigned cpu) {
    const auto* thread = place(asking);
    if (thread == nullptr) return JoinOutcome::not_yours;
    const auto* process = tasks_.table().find(asking.process.tid);
    const auto& placements = current_.placements();
    const auto* resolved = placements.find(current_->policy(asking.policy).name);
    const bool is_alone = process->threads.size() == 1;
    if (resolved == nullptr || !resolved->active || !thread->seat.table || !(thread->seat.is_own || is_alone))
        return JoinOutcome::no_slot;
    auto& assignments = tasks_.placer().assignments();
    const auto& task = thread->seat.is_own ? thread->id : process->id;
    const auto slot =
        planner::slot_with_cpu(*resolved, placements, assignments, task, *thread->seat.table, cpu);
    if (slot.state == planner::AtArrivals::crowded) return JoinOutcome::crowded;
    if (slot.state != planner::AtArrivals::here && !slot.move) return JoinOutcome::no_slot;
    if (slot.move) {
        assignments.move(task, slot.move->table, slot.move->from, slot.move->to);
        thread = place(asking);
    }
    return thread != nullptr && is_placed(*thread) ? JoinOutcome::done : JoinOutcome::put_off;
}

} // namespace

void add_joins(Daemon& daemon, const Bus&) { daemon.add(std::make_unique<Joins>(daemon)); }

} // namespace affinityd::behaviours
