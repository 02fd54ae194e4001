// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "behaviours/list.hpp"
#include "host/root.hpp"
#include "host/self.hpp"
#include "inventory/process_files.hpp"
#include "planner/crowding.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityd::behaviours {

namespace {

using planner::one_cpu;
using planner::Weight;
using std::chrono::nanoseconds;

constexpr std::chrono::seconds old_enough{10}; ///< for what it used since its birth to say something

/// The share it would use if it had a CPU for itself: who shares one gets a part and waits for the rest. But
/// who hardly runs may wait for long, too, behind a busy neighbor, and would use next to nothing all the
/// same.
Weight share(const inventory::SchedTime& used, nanoseconds time) {
    constexpr std::uint64_t most_sharers = 5;
    const auto wanted = used.run_ns + std::min(used.wait_ns, used.run_ns * (most_sharers - 1));
    const auto part =
        static_cast<double>(wanted) / static_cast<double>(std::max<std::int64_t>(1, time.count()));
    return static_cast<Weight>(std::min(part, 1.0) * static_cast<double>(one_cpu));
}

/// Seconds that each CPU has spent in interrupts and softirqs, by its number. Source: proc_stat(5), fields
/// irq and softirq.
std::map<unsigned, double> interrupt_seconds(std::string_view stat, double ticks_per_second) {
    std::map<unsigned, double> seconds;
    for (const auto line : split(stat, '\n')) {
        if (!line.starts_with("cpu")) break; // the other lines may be long
        const auto words = split_words(line);
        const auto cpu = parse_number<unsigned>(words[0].substr(3));
        if (!cpu || words.size() < 8) continue;
        const auto irq = parse_number<std::uint64_t>(words[6]);
        const auto softirq = parse_number<std::uint64_t>(words[7]);
        if (irq && softirq)
            seconds[*cpu] = (static_cast<double>(*irq) + static_cast<double>(*softirq)) / ticks_per_second;
    }
    return seconds;
}

/// The stage of a pass that weighs tasks and interrupts, and relieves crowded cores: not more often than
/// `redeal:` says, however many passes there are. With `redeal: 0` no task is moved, and all are weighed once
/// a minute.
///
/// The load of the machine is what tasks use, and not how many they are: the share of a CPU for which a
/// thread ran since it was last weighed, or would have run had it not waited; when it is weighed for the
/// first time, since its birth, if that was long enough ago. An unknown use is left as it was: one CPU at
/// first; a thread that the policy leaves to another program counts nothing.
class Balance final : public Behaviour {
  public:
    /// References must outlive it.
    explicit Balance(Daemon& daemon) : shared_(daemon.shared()), tasks_(daemon.tasks()) {}

    Slices after_tasks() override;
    void report(status::Overview& into) const override { into.crowding = crowding_; }

  private:
    [[nodiscard]] Slices weigh_tasks(std::optional<Clock::time_point> last);
    [[nodiscard]] std::optional<planner::Weight> weight_of(KnownThread& thread, int pid,
                                                           std::optional<Clock::duration> since) const;
    void weigh_interrupts();
    void relieve();

    Shared& shared_;
    Tasks& tasks_;
    std::optional<Clock::time_point> begun_;       ///< the last time
    std::map<unsigned, double> interrupt_seconds_; ///< by CPU, at `interrupts_at_`
    std::optional<Clock::time_point> interrupts_at_;
    planner::Relief relief_;
    std::optional<planner::Crowding> crowding_; ///< the worst of the last look that was left as it is
};

Slices Balance::after_tasks() {
    constexpr std::chrono::seconds usual{60};
    const auto interval = shared_.settings.redeal_interval;
    const auto now = Clock::now();
    if (begun_ && now - *begun_ < (interval.count() > 0 ? interval : usual)) co_return;
    for (auto weighing = weigh_tasks(std::exchange(begun_, now)); !weighing.step(a_part);)
        co_yield pause;
    weigh_interrupts();
    relieve();
}

/// Threads that have no slots of their own count with their process, by distribution: it may have slots of
/// several.
Slices Balance::weigh_tasks(std::optional<Clock::time_point> last) {
    const auto since = last ? std::optional(*begun_ - *last) : std::nullopt;
    auto& assignments = tasks_.placer().assignments();
    std::vector<int> pids;
    for (const auto& [pid, process] : tasks_.table().processes())
        pids.push_back(pid);
    for (const int pid : pids) {
        auto* process = tasks_.table().find(pid);
        if (process == nullptr) continue;
        const auto id = process->id;
        std::map<unsigned, std::optional<Weight>> sums;
        for (int next = 0; process != nullptr && process->id == id; process = tasks_.table().find(pid)) {
            auto* thread = process->threads.next(next);
            if (thread == nullptr) break;
            next = thread->id.tid + 1;
            if (!thread->seat.table) continue;
            const unsigned table = *thread->seat.table;
            auto weight = weight_of(*thread, pid, since);
            // Others may use the slot of a task that yielded; the task counts as little as any foreign one.
            if (thread->state == planner::ThreadPlan::State::yielded) weight = 0;
            if (thread->seat.is_own && thread->id != id) {
                if (weight) assignments.weigh(table, thread->id, *weight);
                assignments.drop_others(thread->id, std::span(&table, 1));
            } else {
                auto& sum = sums[table];
                if (weight) sum = sum.value_or(0) + *weight;
            }
            co_yield pause;
        }
        if (process == nullptr || process->id != id) continue;
        std::vector<unsigned> tables;
        for (const auto& [table, weight] : sums) {
            if (weight) assignments.weigh(table, id, *weight);
            tables.push_back(table);
        }
        assignments.drop_others(id, tables);
        co_yield pause;
    }
}

std::optional<Weight> Balance::weight_of(KnownThread& thread, int pid,
                                         std::optional<Clock::duration> since) const {
    const auto now = inventory::read_sched_time(shared_.root, pid, thread.id.tid);
    const auto before = std::exchange(thread.seat.used, now);
    if (!now) return std::nullopt;
    if (before && since && now->run_ns >= before->run_ns && now->wait_ns >= before->wait_ns)
        return share({now->run_ns - before->run_ns, now->wait_ns - before->wait_ns}, *since);
    const auto ticks = host::ticks_since_boot();
    if (ticks <= thread.id.start_time) return std::nullopt;
    const auto age = std::chrono::duration<double>(static_cast<double>(ticks - thread.id.start_time) /
                                                   static_cast<double>(host::ticks_a_second()));
    if (age < old_enough) return std::nullopt;
    return share(*now, std::chrono::duration_cast<nanoseconds>(age));
}

/// By the time that their CPUs spend in them, so that the queues of a quiet interface push no task off a
/// core.
void Balance::weigh_interrupts() {
    constexpr double long_enough = 1; // seconds, for counts in hundredths
    if (!shared_.current->has_interrupts()) return;
    const auto stat = shared_.root.proc().read("stat");
    if (!stat || !*stat) return;
    const auto now = Clock::now();
    auto seconds = interrupt_seconds(**stat, static_cast<double>(host::ticks_a_second()));
    const auto before = std::exchange(interrupt_seconds_, std::move(seconds));
    const auto since = std::exchange(interrupts_at_, now);
    const double time = since ? std::chrono::duration<double>(now - *since).count() : 0;
    if (time < long_enough) return;
    std::map<unsigned, Weight> weights;
    for (const auto& [cpu, spent] : interrupt_seconds_)
        if (const auto found = before.find(cpu); found != before.end() && spent >= found->second)
            weights[cpu] = static_cast<Weight>(std::min((spent - found->second) / time, 1.0) *
                                               static_cast<double>(one_cpu));
    shared_.current->weigh_interrupts(std::move(weights));
}

void Balance::relieve() {
    auto& assignments = tasks_.placer().assignments();
    const auto& placements = shared_.current.placements();
    assignments.use(placements.load, placements.number);
    std::unordered_set<TaskId> serving; // where their packets arrive
    for (const auto& [pid, process] : tasks_.table().processes())
        for (const auto& thread : process.threads)
            if (thread.joined && thread.joined->serves) serving.insert(thread.id);
    const auto found = planner::crowdings(placements, assignments, [&](const TaskId& task) {
        return shared_.is_held(task) || serving.contains(task);
    });
    const auto told = std::ranges::find_if(found, &planner::Crowding::is_by_mask);
    crowding_ = told == found.end() ? std::nullopt : std::optional(*told);
    const auto moves = relief_.look(found);
    if (shared_.settings.redeal_interval.count() == 0 || moves.empty()) return;
    for (const auto& move : moves) {
        assignments.move(move.task, move.table, move.from, move.to);
        shared_.log.info("changes place: " + planner::to_string(move), "tasks of crowded cores moved");
    }
    crowding_.reset();
    shared_.want_pass();
}

} // namespace

void add_balance(Daemon& daemon, const Bus&) { daemon.add(std::make_unique<Balance>(daemon)); }

} // namespace affinityd::behaviours
