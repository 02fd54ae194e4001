// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/bookkeeping.hpp"
#include "app/load.hpp"
#include "app/place_thread.hpp"
#include "app/steering.hpp"
#include "app/task_events.hpp"
#include "app/task_table.hpp"
#include "app/work.hpp"
#include "coexist/other_writers.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/facts.hpp"
#include "inventory/process_scan.hpp"

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

/// Sends the memory of processes under `memory: follow` to the NUMA nodes that they now run on.
class MemoryFollower {
  public:
    explicit MemoryFollower(Shared& shared) : shared_(shared) {}

    struct State {
        std::vector<unsigned> nodes; ///< where its memory was last sent
        std::string text;            ///< the result, for people
    };
    /// The process's threads are in place.
    void follow(const KnownProcess& process);
    void forget(const TaskId& process) { states_.erase(process); }
    /// Takes up what has been moved since the last call.
    void take_moved();
    [[nodiscard]] const State* find(const TaskId& process) const; ///< nullptr: it was not asked for

  private:
    Shared& shared_;
    std::unordered_map<TaskId, State> states_;
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
    std::shared_ptr<World> world;      ///< in force when it began: another set has other indices
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
    /// Those who see the processes as they are looked at.
    struct Followers {
        Steering& steering;
        coexist::OtherWriters& writers;
        Bookkeeping& bookkeeping;
    };
    /// References must outlive it.
    Tasks(Shared& shared, ThreadPlacer placer, const Followers& followers);

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
    /// Each process is listed, read as far as it is wanted, and placed. True: all of them.
    bool look_at_all(const OutOfTime& out_of_time);
    /// The pass has seen all processes: drops what it has not seen, in slices. True: all of it.
    bool end_pass(const OutOfTime& out_of_time);

    /// Another set of policies is in force: processes keep their policy by its name.
    void use_policies_of(const World& before);
    /// The daemon ends: drops what events left unfinished.
    void begin_stop() { unfinished_.clear(); }

    [[nodiscard]] TaskTable& table() { return table_; }
    [[nodiscard]] ThreadPlacer& placer() { return placer_; }
    [[nodiscard]] inventory::FactSources& sources() { return sources_; }
    [[nodiscard]] MemoryFollower& memory() { return memory_; }
    /// The policy that wants a process, released ones left out.
    [[nodiscard]] std::optional<std::size_t> match(const inventory::ProcessScan& scan) const;
    /// True for a process that no policy wants, but that may have something from us, or be on CPUs that a
    /// policy claims.
    [[nodiscard]] bool must_look_at(const inventory::ProcessScan& scan, int creator) const;
    /// Events that wait to be handled, and the budgets that pay for them.
    [[nodiscard]] EventQueue& events() { return events_; }

  private:
    [[nodiscard]] bool begin_next();
    [[nodiscard]] std::optional<int> next_pid();
    std::nullopt_t give_up_list(const std::string& why);
    [[nodiscard]] std::optional<Turn> begin_turn(inventory::ProcessScan& scan,
                                                 const ProcessChange& change = {});
    void take_in(Turn& turn, std::size_t policy);
    bool go_on(Turn& turn, const OutOfTime& out_of_time);
    [[nodiscard]] bool read_threads(Turn& turn, const OutOfTime& out_of_time);
    [[nodiscard]] bool read_again(inventory::Thread& thread, Turn& turn) const;
    [[nodiscard]] bool is_released(const Turn& turn) const;
    void follow_exec(const Turn& turn);
    [[nodiscard]] bool finish(Turn& turn, const OutOfTime& out_of_time);
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
    void bury(const TaskId& thread, int pid);
    void bury_if_gone(int pid, const TaskId& thread, KnownProcess* known);
    [[nodiscard]] bool sweep(const OutOfTime& out_of_time);

    [[nodiscard]] bool sets_interrupts(const inventory::ProcessScan& scan) const;
    void came_or_went();
    void miss() { shared_.work.want(Work::Urgency::later); }
    void miss(const Error& why);

    Shared& shared_;
    const Current& current_;
    ThreadPlacer placer_;
    Followers followers_;
    MemoryFollower memory_;
    TaskTable table_;
    inventory::FactSources sources_;
    EventQueue events_;
    std::deque<Turn> unfinished_;     ///< of events, at most 16: each holds a descriptor and memory
    std::uint64_t missing_until_ = 0; ///< the pass that makes up for lost events; 0: none were lost

    // For the pass.
    std::uint64_t passes_ = 0;
    std::optional<inventory::PidStream> pids_;
    std::optional<Turn> turn_;               ///< of the process that is looked at now
    bool is_listed_ = false;                 ///< all processes were named
    std::optional<std::vector<int>> unseen_; ///< processes, still to be dropped; no value: not looked for yet
    std::optional<int> swept_;               ///< up to which pid the sweep has come; no value: it is over
    int swept_pid_ = 0;                      ///< the process that it has reached
    std::vector<TaskId> doubtful_;           ///< its threads that are still to be checked
};

/// Looks at the processes of control groups into which processes were put; which ones is not told. A process
/// may come under another policy that way, or into another cpuset.
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
    const host::Dir& sys_;
    Tasks& tasks_;
    std::vector<std::string> groups_;
    std::function<void()> too_many_;
    std::vector<int> pids_; ///< still to be looked at
};

} // namespace affinityd::app
