// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cgroup_walk.hpp"
#include "app/fence_writer.hpp"
#include "app/job.hpp"
#include "app/releases.hpp"
#include "app/restorer.hpp"
#include "app/unit_place.hpp"
#include "app/world.hpp"
#include "base/task_id.hpp"
#include "status/status.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// The way of systemd units: sets the AllowedCPUs= of those whose processes are all under one policy with
/// `means: cpuset`, and restores them. A fence must not surprise foreign processes: while the unit has one,
/// there is no fence.
///
/// observe: processes are named by events and passes, those of the whole unit are read from its control
/// group, in slices; plan: plan_fence(); apply: FenceWriter, without waiting; status: what became of each
/// unit. One unit has one call to systemd under way at most; a unit that is concerned again meanwhile is
/// looked at again afterwards.
class Units {
  public:
    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        const Current& current;
        enforcer::Executor& executor;
        enforcer::UnitProperties& properties;
        const Releases& releases;
        std::function<void()>
            fences_changed; ///< the kernel has cut or widened masks of tasks: they want another look
        Log& log;
        bool acts = true; ///< false: nothing is asked or changed (dry run)
        std::function<void()> work_left =
            {}; ///< an event left something for step(); without it the next pass sees to that
        /// What has become of a unit that some policy wants, or wanted last.
        std::function<void(const std::string& unit, const std::string& policy, const FenceResult& result)>
            settled = {};
    };
    explicit Units(Parts parts);

    /// A process under the policy of this index was seen, with its path as in /proc/PID/cgroup. A policy
    /// without `means: cpuset` is as good as none. Known processes cost a look-up.
    void observe(const TaskId& process, std::string_view cgroup, std::size_t policy);
    /// It ended, or no such policy wants it any more.
    void forget(const TaskId& process);
    /// All processes have been named: all units are to be looked at, also those that only the undo journal
    /// knows.
    void begin_pass();
    /// Looks at units until `out_of_time` says so. True: nothing is left to do until systemd answers or a
    /// process comes.
    bool step(const OutOfTime& out_of_time);

    using Choose = std::function<Restorer::Choice(const state::Entry& entry)>;
    /// How many units were restored.
    using Restored = std::move_only_function<void(std::size_t count)>;
    /// Restores units in the journal, for a release and at the end. Their processes are forgotten: a unit
    /// gets a fence again when processes of it are observed. Calls `done` once, now or later from the loop,
    /// at the latest when systemd's time for five answers has passed.
    void restore(const Choose& choose, Restored done);
    /// Restores what the policies say is to be restored; is_busy() says when that is over. No unit is looked
    /// at any more.
    void begin_stop();
    /// Something is to be done, or an answer of systemd is awaited.
    [[nodiscard]] bool is_busy() const { return !due_.empty() || awaits_systemd(); }
    /// Parts::settled is still to be called for some unit.
    [[nodiscard]] bool awaits_systemd() const;

    [[nodiscard]] std::vector<status::UnitStatus> status() const;
    [[nodiscard]] std::vector<planner::Problem> problems() const;
    /// Adds the unit of a process under `means: cpuset`, and that unit's state.
    void explain(const TaskId& process, status::ProcessExplanation& into) const;

  private:
    struct Member {
        TaskId process;
        std::string unit; ///< "": none that could have a fence
        std::string policy;
    };
    struct Restoring;
    struct Unit {
        std::string folder;                          ///< its control group
        std::map<std::string, std::size_t> policies; ///< of its members, with how many there are
        std::string policy;                          ///< the last one that wanted it
        bool stays_if_removed = false;               ///< that policy says on_stop: keep
        std::string state;                           ///< "" until it was looked at
        bool is_due = false;                         ///< to be looked at
        bool is_called = false;                      ///< systemd has not answered yet
        bool is_unconfirmed = false;                 ///< as FenceResult
        std::optional<CgroupWalk> walk; ///< the search for foreign processes, if one is under way
        int foreign = 0;                ///< whom the last search found; 0: nobody
        unsigned searches = 0;
        std::vector<std::shared_ptr<Restoring>> restoring; ///< who waits for it to be restored
    };
    enum class Search { unfinished, none, found, unclear };
    [[nodiscard]] bool look(const std::string& name, Unit& unit, const OutOfTime& out_of_time);
    [[nodiscard]] Search search(const std::string& name, Unit& unit, const OutOfTime& out_of_time);
    [[nodiscard]] std::string obstacle(const Unit& unit) const;
    [[nodiscard]] bool is_wanted(const Unit& unit) const;
    [[nodiscard]] FenceWish wish_for(const Unit& unit, std::string obstacle) const;
    bool drop_record(const std::string& name);
    void settle(const std::string& name, Unit& unit, std::string obstacle);
    void settled(const std::string& name, const FenceResult& result);
    void leave(const Member& member);
    void make_due(const std::string& name);

    Parts parts_;
    FenceWriter writer_;
    std::unordered_map<int, Member> members_; ///< by pid
    std::map<std::string, Unit> units_;       ///< by name
    std::vector<std::string> due_;            ///< units to look at, the next one last
    bool has_passed_ = false;                 ///< processes of before the daemon's start are known
    bool is_stopping_ = false;
};

} // namespace affinityd::app
