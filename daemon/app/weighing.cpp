// SPDX-License-Identifier: Apache-2.0
#include "app/weighing.hpp"

#include "host/boot_clock.hpp"
#include "host/root.hpp"
#include "inventory/run_record.hpp"

#include <algorithm>

namespace affinityd::app {

namespace {

using planner::one_cpu;
using planner::Weight;
using std::chrono::nanoseconds;

constexpr std::chrono::seconds old_enough{10}; ///< for what it used since its birth to say something

/// What it would use if it had a CPU for itself: who shares one gets a part and waits for the rest. But who
/// hardly runs may wait for long, too, behind a busy neighbor, and would use next to nothing all the same.
Weight share(const inventory::SchedTime& used, nanoseconds time) {
    constexpr std::uint64_t most_sharers = 5;
    const auto wanted = used.run_ns + std::min(used.wait_ns, used.run_ns * (most_sharers - 1));
    const auto part =
        static_cast<double>(wanted) / static_cast<double>(std::max<std::int64_t>(1, time.count()));
    return static_cast<Weight>(std::min(part, 1.0) * static_cast<double>(one_cpu));
}

} // namespace

Weighing::Weighing(const host::Root& root, TaskTable& tasks, planner::Assignments& assignments,
                   std::optional<Clock::time_point> before)
    : root_(root), tasks_(tasks), assignments_(assignments), ticks_(host::ticks_since_boot()) {
    if (before) since_ = Clock::now() - *before;
    for (const auto& [pid, process] : tasks.processes())
        pids_.push_back(pid);
}

bool Weighing::step(const OutOfTime& out_of_time) {
    while (!pids_.empty()) {
        auto* process = tasks_.find(pids_.back());
        if (process != nullptr && !weigh(*process, out_of_time)) return false;
        sums_.reset();
        pids_.pop_back();
        if (out_of_time()) return false;
    }
    return true;
}

/// True: all its threads were weighed.
bool Weighing::weigh(KnownProcess& process, const OutOfTime& out_of_time) {
    if (!sums_ || sums_->process != process.id) sums_ = Sums{.process = process.id};
    while (auto* thread = process.threads.next(sums_->next_tid)) {
        sums_->next_tid = thread->id.tid + 1;
        if (!thread->seat.table) continue;
        const unsigned table = *thread->seat.table;
        auto weight = weight_of(*thread, process.id.tid);
        // Its slot is free for others to use. What it does elsewhere counts as little as any foreign task's.
        if (thread->state == planner::ThreadPlan::State::yielded) weight = 0;
        if (thread->seat.is_own && thread->id != process.id) {
            if (weight) assignments_.weigh(table, thread->id, *weight);
            assignments_.leave_others(thread->id, std::span(&table, 1));
        } else { // the process may have slots of several distributions
            auto& sum = sums_->weights[table];
            if (weight) sum = sum.value_or(0) + *weight;
        }
        if (out_of_time()) return false;
    }
    settle(process);
    return true;
}

std::optional<Weight> Weighing::weight_of(KnownThread& thread, int pid) const {
    const auto now = inventory::read_sched_time(root_, pid, thread.id.tid);
    const auto before = std::exchange(thread.seat.used, now);
    if (!now) return std::nullopt;
    if (before && since_ && now->run_ns >= before->run_ns && now->wait_ns >= before->wait_ns)
        return share({now->run_ns - before->run_ns, now->wait_ns - before->wait_ns}, *since_);
    if (ticks_ <= thread.id.start_time) return std::nullopt;
    const auto age = std::chrono::duration<double>(static_cast<double>(ticks_ - thread.id.start_time) /
                                                   static_cast<double>(host::ticks_a_second()));
    if (age < old_enough) return std::nullopt;
    return share(*now, std::chrono::duration_cast<nanoseconds>(age));
}

void Weighing::settle(const KnownProcess& process) {
    std::vector<unsigned> tables;
    for (const auto& [table, weight] : sums_->weights) {
        if (weight) assignments_.weigh(table, process.id, *weight);
        tables.push_back(table);
    }
    assignments_.leave_others(process.id, tables);
}

} // namespace affinityd::app
