// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/truce.hpp"
#include "base/cpu_set.hpp"
#include "base/task_id.hpp"
#include "enforcer/enforcer.hpp"
#include "planner/plan.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// What the daemon knows of one thread of a process under policy.
struct KnownThread {
    TaskId id;
    std::string comm;
    CpuSet wanted;
    CpuSet present; ///< as last read or granted
    Truce truce{};  ///< with whoever keeps changing our mask
    planner::ThreadPlan::State state = planner::ThreadPlan::State::unwanted;
    std::optional<enforcer::Outcome> outcome; ///< of the last change; nothing: none was needed
};

/// A process that a policy wants.
struct KnownProcess {
    TaskId id;
    std::string comm;
    std::size_t policy = 0;             ///< index into the world's set
    std::vector<std::string> nics;      ///< interfaces that serve it, as far as known
    std::map<int, KnownThread> threads; ///< by tid
    std::uint64_t seen = 0;             ///< number of the reconcile that saw it last
    std::optional<CpuSet> cpuset;       ///< CPUs its cgroup leaves it; nothing: all, or not known
    std::string unit;                   ///< systemd unit, under means: cpuset; "": none that could be fenced
    std::string unit_folder;            ///< its control group: "/system.slice/nginx.service"
    std::vector<unsigned> memory_nodes; ///< under memory: follow, the nodes its memory was last sent to
    std::string memory_state;           ///< what became of that, for people; "": nothing was asked
    std::uint64_t cpuset_read = ~0ULL;  ///< number of the reconcile since which that holds
};

/// All processes under policy, by pid. Processes nobody wants are not kept: a busy machine has many of them.
class TaskTable {
  public:
    [[nodiscard]] KnownProcess* find(int pid);
    [[nodiscard]] const KnownProcess* find(int pid) const;
    /// This very thread of a process under policy.
    [[nodiscard]] const KnownThread* find(int pid, const TaskId& thread) const;
    /// The entry of this very process; an older one of the same number is replaced.
    KnownProcess& insert(const TaskId& id);
    void erase(int pid) { processes_.erase(pid); }
    void clear() { processes_.clear(); }
    [[nodiscard]] const std::unordered_map<int, KnownProcess>& processes() const { return processes_; }
    [[nodiscard]] std::unordered_map<int, KnownProcess>& processes() { return processes_; }

  private:
    std::unordered_map<int, KnownProcess> processes_;
};

} // namespace affinityd::app
