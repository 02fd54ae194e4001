// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/event_queue.hpp"
#include "app/load.hpp"
#include "app/reaper.hpp"
#include "app/releases.hpp"
#include "app/settling.hpp"
#include "app/task_observer.hpp"
#include "app/task_table.hpp"
#include "app/thread_placer.hpp"
#include "app/work.hpp"
#include "inventory/facts.hpp"
#include "inventory/process_scan.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace affinityd::app {

/// Why a process is looked at.
struct ProcessChange {
    std::optional<int> creator{}; ///< the process that forked it, if it was born
    bool has_changed = true;      ///< false: nothing is known to have changed, its time has come
    bool is_executed = false;     ///< it runs another program
    bool has_lost_main = false;   ///< its main thread has ended; if there is one again, it was another thread
};

/// One process whose threads are being looked at, and how far that has come: a process with thousands of
/// threads is left and taken up again.
struct Turn {
    inventory::ProcessScan scan;
    ProcessChange change{};            ///< the creator is known always
    std::optional<std::size_t> policy; ///< that wants it, as index into the world's set
    std::shared_ptr<World> world; ///< in force when it began: another set has other indices; null: it is over
    std::vector<inventory::Thread> threads{};
    std::size_t next = 0;       ///< of `threads`
    bool is_read = false;       ///< `threads` has been read
    bool is_incomplete = false; ///< some of its threads could not be read: another pass is to look at it
    /// Known threads that the scan did not find, once it is through.
    std::optional<std::vector<TaskId>> unseen{};
    KnownCpuset cpuset{};                 ///< of a process that no policy wants
    std::optional<ProcessChange> again{}; ///< an event has named it meanwhile: it wants another turn
    uid_t person = 0;                     ///< pays for it
    bool was_left = false;                ///< since some of it was read: what events said meanwhile is newer
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
    struct Parts {
        const host::Root& root;
        const Current& current;
        enforcer::Executor& executor;
        Log& log;
        Releases& releases;
        TaskObserver& observer;
    };
    Tasks(const Parts& parts, ThreadPlacer placer, Reaper reaper);

    // Events. None of them works for longer than a slice: what is left of a process waits for step().
    /// A process exec'ed, was renamed, has another user, was forked by a process under policy, or is to be
    /// looked at again.
    void process_changed(int pid, const ProcessChange& change = {});
    /// A process may be in another control group than before.
    void process_moved(int pid);
    /// A thread was born.
    void thread_changed(int pid, int tid);
    /// A thread has named itself. One that is known is not read again, for the name came with the event; but
    /// after lost events its number may mean another thread by now.
    void thread_renamed(int pid, int tid, std::string_view name);
    void task_gone(int pid, int tid);
    /// What is known counts as stale until a pass that begins later has ended.
    void events_lost() { missing_until_ = passes_ + 1; }
    /// Goes on with processes that events have left unfinished. True: there are none.
    bool step(const OutOfTime& out_of_time);

    // The pass.
    void begin_pass();
    /// Matches a process; no value: it need not be looked at. Else the scan has gone into the turn.
    [[nodiscard]] std::optional<Turn> begin_turn(inventory::ProcessScan& scan,
                                                 const ProcessChange& change = {});
    /// Looks at its threads until `out_of_time` says so. True: at all of them.
    bool go_on(Turn& turn, const OutOfTime& out_of_time);
    /// The pass has seen all processes: drops what it has not seen, in slices. True: all of it.
    bool end_pass(const OutOfTime& out_of_time);

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
    /// Events that wait to be handled, and the budgets that pay for them.
    [[nodiscard]] EventQueue& events() { return events_; }

  private:
    void place_fresh(KnownProcess& process, const inventory::Thread& thread);
    [[nodiscard]] bool finish(Turn& turn, const OutOfTime& out_of_time);
    void drop(int pid);
    [[nodiscard]] bool decide(Turn& turn, std::optional<std::size_t> policy);
    [[nodiscard]] const CpuSet* cpuset_of(KnownCpuset& known, int pid, const inventory::Thread& thread);

    Parts parts_;
    ThreadPlacer placer_;
    Reaper reaper_;
    TaskTable table_;
    inventory::FactSources sources_;
    std::deque<Turn> unfinished_; ///< of events, at most 16: each holds a descriptor and memory
    std::uint64_t passes_ = 0;
    std::optional<std::vector<int>>
        unseen_; ///< by this pass, still to be dropped; no value: not looked for yet
    EventQueue events_;
    Settling settling_;
    std::uint64_t missing_until_ = 0; ///< the pass that makes up for lost events; 0: none were lost
};

} // namespace affinityd::app
