// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/log.hpp"
#include "app/work.hpp"
#include "base/task_id.hpp"
#include "enforcer/executor.hpp"
#include "enforcer/unit_cpus.hpp"
#include "host/root.hpp"
#include "planner/action.hpp"
#include "status/status.hpp"

#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

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
/// nothing waits for it.
class Units {
  public:
    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        const Current& current;
        enforcer::Executor& executor;
        enforcer::UnitProperties& properties;
        const Releases& releases;
        Log& log;
        bool acts; ///< false: nothing is asked or changed (dry run)
        /// A unit has its first process, or the kernel has cut or widened masks of its tasks.
        std::function<void()> pass_wanted;
        /// systemd has answered for a unit that some policy wants, or wanted last.
        std::function<void(const std::string& unit, const std::string& policy, const FenceResult& result)>
            answered;
    };
    explicit Units(Parts parts) : parts_(std::move(parts)) {}

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
        bool stays_if_removed = false;  ///< that policy says on_stop: keep
        std::string state;              ///< "" until it was looked at
        std::string obstacle;           ///< why it has no fence; "": none
        bool is_called = false;         ///< systemd has not answered yet
        bool is_unconfirmed = false;    ///< as FenceResult
        int foreign = 0;                ///< a process that is not under the policy; 0: none was found
    };
    void look(const std::string& name, Unit& unit);
    [[nodiscard]] std::string obstacle(const std::string& name, Unit& unit);
    [[nodiscard]] Result<int> find_foreign(const std::string& name, const Unit& unit) const;
    [[nodiscard]] bool is_wanted(const Unit& unit) const;
    void settle(const std::string& name);
    void decide(const std::string& name, const std::expected<CpuSet, int>& present);
    void set(const std::string& name, const CpuSet& present, const planner::UndoPointer& before);
    void restore(const std::string& name, const CpuSet& original);
    void finish(const std::string& name, FenceResult result);
    void report(const Result<void>& written);
    [[nodiscard]] const state::Journal& journal() const { return parts_.executor.journal(); }

    Parts parts_;
    std::unordered_map<int, Member> members_; ///< by pid
    std::map<std::string, Unit> units_;       ///< by name
    std::vector<std::string> due_;            ///< units to look at, the next one last
    bool is_stopping_ = false;
    std::shared_ptr<int> alive_ = std::make_shared<int>(); ///< answers that come after the end are dropped
};

} // namespace affinityd::app
