// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "core/shared.hpp"
#include "core/task_table.hpp"
#include "enforcer/unit_cpus.hpp"
#include "host/root.hpp"
#include "status/status.hpp"

#include <expected>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::core {

/// The processes in a control group, by its path as in /proc/PID/cgroup. None: it is gone, or threaded (its
/// domain lists them). Source: cgroup-v2.rst, cgroup.procs.
[[nodiscard]] Result<std::vector<int>> processes_in(const host::Dir& sys, const std::string& group);

/// The way of systemd units: each pass sets the AllowedCPUs= of those whose processes are all under one
/// policy with `means: cpuset`, and restores the others. A unit has one call to systemd under way at most;
/// nothing waits for it. In a dry run nothing is asked or changed.
class Units {
  public:
    /// References must outlive it. `properties` makes no calls once this has ended.
    Units(Shared& shared, enforcer::UnitProperties& properties, const TaskTable& tasks)
        : shared_(shared), properties_(properties), tasks_(tasks) {}

    /// All processes under policy have been seen, with their control groups by the policy's name: all units
    /// are to be looked at, also those that only the undo journal knows.
    void begin_pass(const std::map<std::string, std::set<std::string>>& groups);
    /// Looks at units until `out_of_time` says so. True: all are looked at; systemd may still have to answer.
    bool step(const OutOfTime& out_of_time);
    /// Restores what the policies say is to be restored; is_busy() says when that is over. No unit is looked
    /// at any more.
    void begin_stop();
    /// Something is to be done, or an answer of systemd is awaited.
    [[nodiscard]] bool is_busy() const;

    [[nodiscard]] std::vector<status::UnitStatus> status() const;
    [[nodiscard]] std::vector<planner::Problem> problems() const;
    /// Adds the unit of a process under `means: cpuset`, by its control group, and that unit's state.
    void explain(std::string_view cgroup, status::ProcessExplanation& into) const;

  private:
    struct Unit {
        std::string folder;             ///< its control group
        std::set<std::string> policies; ///< with `means: cpuset`, that want it, by the last pass
        std::string policy;             ///< the last one that wanted it
        CpuSet cpus;                    ///< of that policy
        std::string state;              ///< "in place", or why not; "" until it was looked at
        std::string obstacle;           ///< why it has no fence; "": none
        bool is_called = false;         ///< systemd has not answered yet
        int foreign = 0;                ///< a process that is not under the policy; 0: none was found
    };
    void look(const std::string& name, Unit& unit);
    [[nodiscard]] std::string obstacle_of(Unit& unit) const;
    [[nodiscard]] bool is_wanted(const Unit& unit) const;
    void ask(const std::string& name);
    void decide(const std::string& name, const std::expected<CpuSet, int>& present);
    void set(const std::string& name, const CpuSet& present, const planner::UndoPointer& before);
    void restore(const std::string& name, const CpuSet& original);
    void finish(const std::string& name, std::string state, bool is_changed = false);

    Shared& shared_;
    enforcer::UnitProperties& properties_;
    const TaskTable& tasks_;
    std::map<std::string, Unit> units_;                          ///< by name
    std::set<std::pair<std::string, std::string>> without_unit_; ///< policies and groups that are of none
    std::vector<std::string> due_;                               ///< units to look at, the next one last
    bool is_stopping_ = false;
};

} // namespace affinityd::core
