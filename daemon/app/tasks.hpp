// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/log.hpp"
#include "app/place_thread.hpp"
#include "app/steering.hpp"
#include "app/task_events.hpp"
#include "app/task_table.hpp"
#include "app/undo.hpp"
#include "app/units.hpp"
#include "app/work.hpp"
#include "base/error.hpp"
#include "enforcer/enforcer.hpp"
#include "enforcer/executor.hpp"
#include "host/root.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/facts.hpp"
#include "inventory/process_scan.hpp"
#include "planner/assignments.hpp"
#include "state/journal.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// Whoever needs to see the processes under policy as they are looked at: units, memory, accounting.
class TaskObserver {
  public:
    virtual ~TaskObserver() = default;
    /// An event names this process, whether or not a policy wants it.
    virtual void named(const inventory::ProcessScan& process) = 0;
    /// A policy wants this process; its threads come next.
    virtual void matched(const KnownProcess& process, const inventory::ProcessFacts& facts) = 0;
    /// All its threads have been looked at.
    virtual void placed(const KnownProcess& process) = 0;
    /// It is no longer under its policy.
    virtual void left(const KnownProcess& process) = 0;
    /// An event, not a pass, brought a process under a policy, under another one, or out of it: NICs may need
    /// another number of lanes.
    virtual void came_or_went() = 0;
    /// A process or thread that an event named could not be read (no descriptor was left): a pass is wanted.
    virtual void missed() = 0;
    /// A process that an event named is not finished: step() has work.
    virtual void work_left() = 0;
};

/// Sends the memory of processes under `memory: follow` to the NUMA nodes that they now run on.
class MemoryFollower {
  public:
    MemoryFollower(const Current& current, enforcer::Enforcer& enforcer, Log& log)
        : current_(current), enforcer_(enforcer), log_(log) {}

    struct State {
        std::vector<unsigned> nodes; ///< where its memory was last sent
        std::string text;            ///< what became of that, for people
    };
    /// The process's threads are in place.
    void follow(const KnownProcess& process);
    void forget(const TaskId& process) { states_.erase(process); }
    /// Takes up what has been moved since the last call.
    void take_moved();
    [[nodiscard]] const State* find(const TaskId& process) const; ///< nullptr: it was not asked for

  private:
    const Current& current_;
    enforcer::Enforcer& enforcer_;
    Log& log_;
    std::unordered_map<TaskId, State> states_;
};

/// Has processes looked at again although no event names them: new ones when they have settled, and those
/// that may come under another policy by what they do next.
class Settling {
  public:
    /// References must outlive it.
    Settling(const host::Root& root, const Current& current, const TaskTable& table,
             inventory::FactSources& sources, LaterLooks& later)
        : root_(root), current_(current), table_(table), sources_(sources), later_(later) {}

    /// A process is looked at that a policy wants. If it is new to it, or runs another program, it begins to
    /// settle; if its time has come, it has settled. Who was there long before the daemon has, too.
    void looked(KnownProcess& process, bool is_new, bool is_executed);
    /// It has several threads, the newest with that start time: it has settled when it has made no more for a
    /// quarter of the time.
    void made_threads(KnownProcess& process, std::uint64_t newest);
    /// `policy`: the one that wants the process now, if any does. `has_changed`: an event has named it.
    void look_later(const inventory::ProcessFacts& facts, std::optional<std::size_t> policy,
                    bool has_changed);

  private:
    const host::Root& root_;
    const Current& current_;
    const TaskTable& table_;
    inventory::FactSources& sources_;
    LaterLooks& later_;
};

/// Clears away what is known of tasks that have ended: their slots, undo records, refusals and backoffs.
class Reaper {
  public:
    Reaper(enforcer::Enforcer& enforcer, enforcer::Executor& executor, Log& log)
        : enforcer_(enforcer), executor_(executor), log_(log) {}

    /// A thread that is known to have ended.
    void bury(const TaskId& thread, int pid, planner::Assignments& assignments);
    /// A thread that may have ended; `known`: the process's entry, if it has one.
    void bury_if_gone(int pid, const TaskId& thread, KnownProcess* known, planner::Assignments& assignments);

    void begin_pass() {
        cursor_ = 0;
        doubtful_.clear();
    }
    /// Tasks of processes outside `table` that ended while nobody looked. Those of processes in it have just
    /// been seen. True: all of them.
    bool sweep(const TaskTable& table, planner::Assignments& assignments,
               const std::function<bool()>& out_of_time);

  private:
    enforcer::Enforcer& enforcer_;
    enforcer::Executor& executor_;
    Log& log_;
    std::optional<int> cursor_;    ///< up to which pid the sweep of this pass has come; no value: it is over
    int pid_ = 0;                  ///< the process that the sweep has reached
    std::vector<TaskId> doubtful_; ///< its threads that are still to be checked
};

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

/// The pass's way over all processes: each is listed, read as far as somebody wants it, and placed.
class TaskRound final : public Job {
  public:
    struct Listeners {
        std::function<void(const inventory::ProcessScan& process)> seen; ///< wanted or not
        std::function<void(const KnownProcess& process)> placed;         ///< all its threads were looked at
    };
    /// References must outlive it.
    TaskRound(const host::Root& root, Tasks& tasks, Listeners listeners, Log& log)
        : root_(root), tasks_(tasks), listeners_(std::move(listeners)), log_(log) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    /// True: there is a process to go on with, or the list is at its end.
    [[nodiscard]] bool begin_next();
    [[nodiscard]] std::optional<int> next_pid();
    /// The rest is not listed: what is known may still be there.
    std::nullopt_t give_up(const std::string& why);
    const host::Root& root_;
    Tasks& tasks_;
    Listeners listeners_;
    Log& log_;
    std::optional<inventory::PidStream> pids_;
    std::optional<Turn> turn_; ///< of the process that is looked at now
    bool is_listed_ = false;   ///< all processes were named
};

/// Looks at the processes of control groups that somebody has put processes into; which ones is not told. A
/// process may come under another policy that way, or into another cpuset.
class GroupMembers final : public Job {
  public:
    static constexpr std::size_t most = 1024; ///< processes that are looked at one by one
    /// `groups` are paths below the folder where control groups are mounted. References must outlive it;
    /// `too_many` is called where a pass is shorter.
    GroupMembers(const host::Dir& sys, Tasks& tasks, std::vector<std::string> groups,
                 std::function<void()> too_many)
        : sys_(sys), tasks_(tasks), groups_(std::move(groups)), too_many_(std::move(too_many)) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    /// True: all are read.
    bool read_next();
    const host::Dir& sys_;
    Tasks& tasks_;
    std::vector<std::string> groups_;
    std::function<void()> too_many_;
    std::optional<CgroupWalk> walk_; ///< of the group that is being read
    std::vector<int> pids_;
    std::size_t next_ = 0; ///< of these
};

/// Passes on what Tasks sees of processes under policy to those who follow them.
class Followers final : public TaskObserver {
  public:
    /// References must outlive it. The functions are those of TaskObserver.
    struct Parts {
        const Current& current;
        Units& units;
        Steering& steering;
        enforcer::Enforcer& enforcer;
        Log& log;
        std::function<void(const inventory::ProcessScan&)> named;
        std::function<void(const KnownProcess&)> matched;
        std::function<void()> came_or_went;
        std::function<void()> missed;
        std::function<void()> work_left;
    };
    explicit Followers(Parts parts)
        : parts_(std::move(parts)), memory_(parts_.current, parts_.enforcer, parts_.log) {}

    void named(const inventory::ProcessScan& process) override { parts_.named(process); }
    void matched(const KnownProcess& process, const inventory::ProcessFacts& facts) override;
    void placed(const KnownProcess& process) override;
    void left(const KnownProcess& process) override;
    void came_or_went() override { parts_.came_or_went(); }
    void missed() override { parts_.missed(); }
    void work_left() override { parts_.work_left(); }
    [[nodiscard]] MemoryFollower& memory() { return memory_; }

  private:
    Parts parts_;
    MemoryFollower memory_;
};

} // namespace affinityd::app
