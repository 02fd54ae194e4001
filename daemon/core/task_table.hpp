// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/task_id.hpp"
#include "enforcer/enforcer.hpp"
#include "inventory/process_files.hpp"
#include "planner/matcher.hpp"
#include "planner/plan.hpp"
#include "policy/policy.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::core {

/// Where a thread counts in the load of the machine, and with how much.
struct KnownSeat {
    std::optional<unsigned> table; ///< its distribution in the assignments; no value: it does not count
    bool is_own = false;           ///< it has a slot of its own, and not its process
    std::optional<inventory::SchedTime> used; ///< until it was last weighed
};

/// A thread of a process under policy, as the daemon knows it.
struct KnownThread {
    TaskId id;
    std::string comm;
    CpuSet wanted;
    CpuSet present;              ///< as last read or granted
    std::optional<CpuSet> found; ///< what it had when it was in place, if that was not our doing
    planner::ThreadPlan::State state = planner::ThreadPlan::State::unwanted;
    std::optional<enforcer::Outcome> outcome; ///< of the last change; no value: none was needed
    KnownSeat seat;
    std::shared_ptr<const planner::Joined> joined; ///< the place that it asked for; null: none
};

/// The known threads of one process, ascending by tid.
class KnownThreads {
  public:
    [[nodiscard]] KnownThread* find(int tid);
    [[nodiscard]] const KnownThread* find(int tid) const;
    /// The entry of this very thread; an older one of the same number is replaced.
    KnownThread& insert(const TaskId& id);
    /// The first whose tid is not smaller; null: there is none.
    [[nodiscard]] KnownThread* next(int tid);
    void erase(const TaskId& id);
    /// How many of them have a smaller tid.
    [[nodiscard]] std::size_t count_below(int tid) const;
    [[nodiscard]] std::size_t size() const { return threads_.size(); }
    [[nodiscard]] bool empty() const { return threads_.empty(); }
    [[nodiscard]] auto begin() const { return threads_.begin(); }
    [[nodiscard]] auto end() const { return threads_.end(); }

  private:
    std::vector<KnownThread> threads_; ///< there are many: a tree would cost half as much again
};

/// The CPUs that a process's cgroup leaves it, as read in some pass.
struct KnownCpuset {
    std::optional<CpuSet> cpus;    ///< no value: all, or not known
    std::uint64_t read_in = ~0ULL; ///< number of that pass
};

/// A new process may use all CPUs of its policy, as it may count them when it starts.
struct KnownSettling {
    std::chrono::steady_clock::time_point until; ///< at the latest
    std::chrono::steady_clock::time_point due;   ///< unless it makes another thread before
    std::uint64_t newest = 0;                    ///< start time of the last one; 0: it has made none
};

/// The findings of the last look at a process.
struct KnownLook {
    std::uint64_t pass = 0;    ///< number of the last pass that saw it
    bool is_unread = false;    ///< this pass could not read it: it may still be there
    bool was_executed = false; ///< it ran another program when it could not be read
};

/// A process that a policy wants.
struct KnownProcess {
    TaskId id;
    std::string comm;
    std::size_t policy = 0;        ///< index into the world's set
    TaskId parent;                 ///< its parent when it was found, if under the same policy; else {}
    std::vector<std::string> nics; ///< interfaces that serve it, or may do so
    bool are_nics_known = false;   ///< they do
    bool takes_none = false;       ///< it has listeners open, but takes no connections from them
    bool reads_nothing = false;    ///< it takes none of the connections of its listeners, and has none
    bool is_elsewhere = false; ///< in another network namespace, and no interface is known that leads there
    std::string way{}, lost{}; ///< in another network namespace: as in accounting::ServedProcess
    std::vector<std::string> ends{};
    KnownThreads threads;
    KnownLook look;
    bool has_lost_main = false; ///< its main thread has ended; if there is one again, it was another thread
    KnownCpuset cpuset;
    std::optional<KnownSettling> settling; ///< no value: its threads have places of their own
};

/// A process as the planner needs it. `known`: nullptr if it is not in the table, which must outlive the
/// view.
[[nodiscard]] planner::ProcessView view_of(const TaskId& id, std::optional<std::size_t> policy,
                                           const KnownProcess* known);

/// All processes under policy, by pid. Others are not kept: a busy machine has many of them.
class TaskTable {
  public:
    [[nodiscard]] KnownProcess* find(int pid);
    [[nodiscard]] const KnownProcess* find(int pid) const;
    /// This very thread of a known process; null: it is not known.
    [[nodiscard]] const KnownThread* find(int pid, const TaskId& thread) const;
    /// As index into the world's set; no value: it is under none.
    [[nodiscard]] std::optional<std::size_t> policy_of(int pid) const;
    /// The entry of this very process; an older one of the same number is replaced.
    KnownProcess& insert(const TaskId& id);
    void erase(int pid) { processes_.erase(pid); }
    [[nodiscard]] const std::unordered_map<int, KnownProcess>& processes() const { return processes_; }
    [[nodiscard]] std::unordered_map<int, KnownProcess>& processes() { return processes_; }
    [[nodiscard]] std::size_t threads() const; ///< of all processes

  private:
    std::unordered_map<int, KnownProcess> processes_;
};

/// Answers `parent:` by walking up the process tree; asked only where a policy says `parent:`.
class ProcessLineage final : public planner::Lineage {
  public:
    ProcessLineage(const host::Root& root, const TaskTable& tasks, const policy::PolicySet& policies)
        : root_(root), tasks_(tasks), policies_(policies) {}
    [[nodiscard]] std::vector<std::string>
    ancestor_policies(const inventory::ProcessFacts& process) const override;

  private:
    const host::Root& root_;
    const TaskTable& tasks_;
    const policy::PolicySet& policies_;
};

} // namespace affinityd::core
