// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/pass.hpp"
#include "base/error.hpp"
#include "base/task_id.hpp"
#include "enforcer/unit_cpus.hpp"
#include "host/fd.hpp"
#include "host/root.hpp"
#include "planner/action.hpp"
#include "status/status.hpp"

#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// The processes in a control group and in those below it, `deepest` levels down, read in small parts: a
/// group may have many thousands. A process that comes or goes meanwhile may be missed. Source:
/// Documentation/admin-guide/cgroup-v2.rst, cgroup.procs.
class CgroupWalk {
  public:
    /// `folder` is relative to `sys`: "fs/cgroup/system.slice/nginx.service". `sys` must outlive the walk.
    CgroupWalk(const host::Dir& sys, std::string folder, unsigned deepest = 8)
        : sys_(&sys), deepest_(deepest), left_{{std::move(folder), 0}} {}

    /// Reads at most 4 KiB, or one list of groups, and appends the process ids found. True: that was all. A
    /// group that goes away meanwhile has no processes; one that cannot be read is an Error.
    [[nodiscard]] Result<bool> step(std::vector<int>& pids);

  private:
    struct Group {
        std::string folder;
        unsigned depth = 0; ///< below the first one
    };
    [[nodiscard]] Result<void> open_next();
    [[nodiscard]] Result<void> read_part(std::vector<int>& pids);
    void take_line(std::vector<int>& pids);

    const host::Dir* sys_;
    unsigned deepest_;
    std::vector<Group> left_; ///< groups that were not opened yet
    host::Fd file_;           ///< cgroup.procs of the one that is being read
    std::string line_;        ///< beginning of a line whose rest was not read yet
};

/// The state of a unit.
struct FenceResult {
    std::string state;           ///< "in place", or why not; "": nothing wants it
    bool is_changed = false;     ///< its CPUs are others than before
    bool is_unconfirmed = false; ///< systemd did not say whether it made the change
    bool is_restored = false;
    bool is_refused = false; ///< systemd did not make the change
};

/// The way of systemd units: each pass sets the AllowedCPUs= of those whose processes are all under one
/// policy with `means: cpuset`, and restores the others. A unit has one call to systemd under way at most;
/// nothing waits for it. In a dry run nothing is asked or changed.
class Units {
  public:
    /// References must outlive it. `properties` makes no calls once this has ended.
    Units(Shared& shared, enforcer::UnitProperties& properties, PassAnswers& answers)
        : shared_(shared), properties_(properties), answers_(answers) {}

    /// A process under the policy of this index was seen, with its path as in /proc/PID/cgroup. A policy
    /// without `means: cpuset` is as good as none.
    void observe(const TaskId& process, std::string_view cgroup, std::size_t policy);
    /// It ended, or no such policy wants it any more.
    void forget(const TaskId& process);
    /// All processes have been named: all units are to be looked at, also those that only the undo journal
    /// knows.
    void begin_pass();
    /// Looks at units until `out_of_time` says so. True: all are looked at; systemd may still have to answer.
    bool step(const OutOfTime& out_of_time);
    /// Restores what the policies say is to be restored; is_busy() says when that is over. No unit is looked
    /// at any more.
    void begin_stop();
    /// Something is to be done, or an answer of systemd is awaited.
    [[nodiscard]] bool is_busy() const { return !due_.empty() || awaits_systemd(); }
    [[nodiscard]] bool awaits_systemd() const;

    [[nodiscard]] std::vector<status::UnitStatus> status() const;
    [[nodiscard]] std::vector<planner::Problem> problems() const;
    /// Adds the unit of a process under `means: cpuset`, and that unit's state.
    void explain(const TaskId& process, status::ProcessExplanation& into) const;

  private:
    struct Member {
        TaskId process;
        std::string unit;   ///< "": none that could have a fence
        std::string folder; ///< the unit's control group
        std::string policy;
    };
    struct Unit {
        std::string folder;
        std::set<std::string> policies; ///< that want it, by the last pass
        std::string policy;             ///< the last one that wanted it
        CpuSet cpus;                    ///< of that policy
        std::string state;              ///< "" until it was looked at
        std::string obstacle;           ///< why it has no fence; "": none
        bool is_called = false;         ///< systemd has not answered yet
        bool is_unconfirmed = false;    ///< as FenceResult
        int foreign = 0;                ///< a process that is not under the policy; 0: none was found
    };
    [[nodiscard]] bool look(const std::string& name, Unit& unit);
    [[nodiscard]] bool begin(Unit& unit);
    [[nodiscard]] bool read_members(const std::string& name, Unit& unit);
    [[nodiscard]] bool is_wanted(const Unit& unit) const;
    void ask(const std::string& name);
    void decide(const std::string& name, const std::expected<CpuSet, int>& present);
    void set(const std::string& name, const CpuSet& present, const planner::UndoPointer& before);
    void restore(const std::string& name, const CpuSet& original);
    void finish(const std::string& name, const FenceResult& result);

    Shared& shared_;
    enforcer::UnitProperties& properties_;
    PassAnswers& answers_;
    std::unordered_map<int, Member> members_; ///< by pid
    std::map<std::string, Unit> units_;       ///< by name
    std::vector<std::string> due_;            ///< units to look at, the next one last
    std::optional<CgroupWalk> walk_;          ///< through the processes of that one
    bool is_stopping_ = false;
};

} // namespace affinityd::app
