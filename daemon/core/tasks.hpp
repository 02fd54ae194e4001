// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/place_thread.hpp"
#include "core/shared.hpp"
#include "core/task_events.hpp"
#include "core/task_table.hpp"
#include "core/work.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/facts.hpp"
#include "inventory/process_scan.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace affinityd::core {

/// Why a process is looked at.
struct ProcessChange {
    std::optional<int> creator{}; ///< the process that forked it, if it was born
    bool has_changed = true;      ///< false: nothing is known to have changed, its time has come
    bool is_executed = false;     ///< it runs another program
    bool has_lost_main = false;   ///< its main thread has ended; if there is one again, it was another thread
};

/// A process whose threads are to be looked at.
struct Turn {
    inventory::ProcessScan scan;
    ProcessChange change{};            ///< the creator is known always
    std::optional<std::size_t> policy; ///< that wants it, as index into the world's set
};

/// True for a kernel thread that does a queue's work under a policy that was told to let go: it stays as it
/// was put back, like the queue itself.
[[nodiscard]] bool serves_released_queue(const inventory::ProcessScan& scan,
                                         const planner::Placements& placements, const Releases& releases);

/// The way of processes and threads: an event or a pass names one, it is read, matched, planned, placed and
/// noted.
class Tasks {
  public:
    /// References must outlive it.
    Tasks(Shared& shared, ThreadPlacer placer);

    // Events. None of them works for longer than a slice: what is left of a process waits for step().
    /// A process exec'ed, was renamed, has another user, was forked by a process under policy, or is to be
    /// looked at again.
    void process_changed(int pid, const ProcessChange& change = {});
    /// A process does its work: it has settled.
    void has_started(int pid);
    /// A process may be in another control group than before.
    void process_moved(int pid);
    /// Looks at the processes of control groups into which processes were put; which ones is not told. A
    /// process may come under another policy that way, or into another cpuset. `groups` are paths below the
    /// folder where control groups are mounted; `too_many` is called where a pass is shorter.
    [[nodiscard]] Slices look_at_members(std::vector<std::string> groups, std::function<void()> too_many);
    /// A thread was born.
    void thread_changed(int pid, int tid);
    /// A thread has named itself. A known thread is not read again, as the event has the name; but after lost
    /// events its number may mean another thread by now.
    void thread_renamed(int pid, int tid, std::string_view name);
    void task_gone(int pid, int tid);
    /// All that is known counts as stale until a pass that begins later has ended.
    void events_lost() { missing_until_ = passes_ + 1; }
    /// Goes on with what events have left unfinished. True: nothing.
    bool step(const OutOfTime& out_of_time);

    // The pass.
    /// Each process is listed, read as far as it is wanted, and placed.
    [[nodiscard]] Slices look_at_all();
    /// The pass has seen all processes: drops what it has not seen.
    [[nodiscard]] Slices end_pass();

    /// Another set of policies is in force: processes keep their policy by its name.
    void use_policies_of(const World& before);
    /// The daemon ends: drops what events left unfinished.
    void begin_stop() { unfinished_.clear(); }

    [[nodiscard]] TaskTable& table() { return table_; }
    [[nodiscard]] ThreadPlacer& placer() { return placer_; }
    [[nodiscard]] inventory::FactSources& sources() { return sources_; }
    /// The policy that wants a process, released ones left out.
    [[nodiscard]] std::optional<std::size_t> match(const inventory::ProcessScan& scan) const;
    /// True for a process that no policy wants, but that may have something from us, or be on CPUs that a
    /// policy claims.
    [[nodiscard]] bool must_look_at(const inventory::ProcessScan& scan, int creator) const;
    /// False: the budget of this user, with all subordinate ids, is spent.
    [[nodiscard]] bool may_ask(uid_t user);
    /// A user's request took so long.
    void charge(uid_t user, std::chrono::nanoseconds time);
    /// Control groups of the processes under each policy, by its name, but for the root's, as of the last
    /// pass.
    [[nodiscard]] const std::map<std::string, std::set<std::string>>& groups() const { return groups_; }
    /// Looks at processes that may have another place now.
    [[nodiscard]] Slices look_at(std::vector<int> pids);
    /// Events that wait to be handled, and the budgets that pay for them.
    [[nodiscard]] EventQueue& events() { return events_; }
    /// How often something was placed or restored since the start.
    [[nodiscard]] std::uint64_t placed() const {
        const auto& counts = shared_.executor.counts();
        return counts[static_cast<std::size_t>(enforcer::Outcome::done)] +
               counts[static_cast<std::size_t>(enforcer::Outcome::narrowed)];
    }

  private:
    void give_up_list(const std::string& why);
    [[nodiscard]] Slices look_at(Turn turn);
    [[nodiscard]] std::optional<Turn> begin_turn(inventory::ProcessScan& scan,
                                                 const ProcessChange& change = {});
    void take_in(Turn& turn, std::size_t policy);
    using Threads = std::vector<inventory::Thread>;
    [[nodiscard]] bool read_again(inventory::Thread& thread, int pid);
    void follow_exec(const Turn& turn, const Threads& threads);
    void doubt_unseen(const Threads& threads, const KnownProcess& known);
    void finish(KnownProcess& known, const Threads& threads);
    void place_fresh(KnownProcess& process, const inventory::Thread& thread);
    void look_soon(const KnownProcess& process, const TaskId& thread);
    void learn_cpuset(KnownCpuset& known, int pid);
    [[nodiscard]] const CpuSet* cpuset_of(KnownCpuset& known, int pid, const inventory::Thread& thread);

    // Looks without an event: at new processes when they have settled, and at those that may come under
    // another policy by what they do next.
    void settle(KnownProcess& process, bool is_new, bool is_executed);
    void made_threads(KnownProcess& process, std::uint64_t newest);
    void look_later(const inventory::ProcessFacts& facts, std::optional<std::size_t> policy,
                    bool has_changed);

    // Tasks that have ended: their slots, records, refusals and backoffs are dropped.
    void drop(int pid);
    void drop(const TaskId& thread, int pid);
    [[nodiscard]] bool drop_doubtful(const OutOfTime& out_of_time);

    void note_group(const KnownProcess& process);
    void came_or_went();
    void miss() { shared_.work.want(Work::Urgency::later); }
    void miss(const Error& why);

    Shared& shared_;
    const Current& current_;
    ThreadPlacer placer_;
    TaskTable table_;
    inventory::FactSources sources_;
    EventQueue events_;
    struct Unfinished {
        int pid = 0;
        uid_t person = 0; ///< pays for it
        Slices look;
    };
    std::list<Unfinished> unfinished_;        ///< of events, at most 16: each holds a descriptor and memory
    std::vector<machine::TaskMask> doubtful_; ///< may have ended unseen
    std::uint64_t missing_until_ = 0;         ///< the pass that makes up for lost events; 0: none were lost
    std::uint64_t passes_ = 0;
    std::map<std::string, std::set<std::string>> groups_;
};

} // namespace affinityd::core
