// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "app/executor.hpp"
#include "app/log.hpp"
#include "app/measurements.hpp"
#include "app/neighbours.hpp"
#include "app/other_writers.hpp"
#include "app/passive_cost.hpp"
#include "app/queue_care.hpp"
#include "app/reconcile.hpp"
#include "app/settings.hpp"
#include "app/task_table.hpp"
#include "app/world.hpp"
#include "inventory/head.hpp"
#include "planner/assignments.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>

namespace affinityd::app {

/// The daemon without its event loop: a world, what is known of its tasks, and the tick. Called from one
/// thread by the loop's sources; it never sleeps, and long work is cut into steps (`reconcile_step`).
class Manager final : public Commands {
  public:
    /// References must outlive the manager.
    struct Parts {
        const host::Root& root;
        state::Journal& journal;
        enforcer::Enforcer& enforcer;
        Log& log;
        Settings settings;
    };
    explicit Manager(Parts parts);
    ~Manager() override;

    /// Loads policies and the machine. An Error: there is no good set to run with.
    Result<void> start();

    /// Called when work waits: `now` that a pass has begun and wants reconcile_step(), `soon` that another
    /// pass is wanted.
    enum class Urgency { now, soon };
    void on_work(std::function<void(Urgency)> waits) { waits_ = std::move(waits); }

    /// Begins a reconcile over all tasks and queues; one that is under way starts over. `machine_changed`:
    /// the hardware is read again first.
    void begin_reconcile(bool machine_changed);
    /// Interfaces, CPUs or cpusets changed, and with them masks on their own: the next pass takes none of
    /// that for somebody's doing.
    void expect_changes() { told_of_change_ = true; }
    /// Works until `out_of_time` says so; true when the reconcile is finished (or none was under way).
    bool reconcile_step(const std::function<bool()>& out_of_time);
    [[nodiscard]] bool reconciling() const { return reconcile_ != nullptr; }

    /// Fast path: a process exec'ed or its main thread was renamed; a thread was renamed or born; a task
    /// exited. `creator`: for a process just forked, who did it, as its parent may have gone meanwhile.
    void process_changed(int pid, std::optional<int> creator = {});
    void thread_changed(int pid, int tid);
    /// A thread has named itself. One that is known is not read again for it: the name came with the event.
    void thread_renamed(int pid, int tid, std::string_view name);
    void task_gone(int pid, int tid);
    /// Events were lost: all is looked at again.
    void events_lost();
    /// True if births of threads and exits matter at all now: some process is under policy.
    [[nodiscard]] bool has_processes() const { return !tasks_.processes().empty(); }

    /// Paths of the cpusets that processes under policy live in, as far as seen since the last pass began.
    [[nodiscard]] std::vector<std::string> cpuset_paths() const { return sources_.cpuset_paths(); }
    [[nodiscard]] std::size_t cpusets() const { return sources_.cpusets(); } ///< how many
    [[nodiscard]] std::string cgroup_folder() const; ///< where control groups are mounted

    /// Puts back what the policies say is to be put back. The last thing before the end.
    void stop();

    [[nodiscard]] bool is_known(int pid) const { return tasks_.find(pid) != nullptr; }
    /// Processes and threads under policy.
    void count(std::size_t& processes, std::size_t& threads) const;

    /// A measuring child (events/ runs it) has ended, or could not be started.
    void measured(const MeasuringRun& run);

    [[nodiscard]] std::string status() const;
    std::string plan();
    Result<std::string> explain(const std::string& subject);
    Result<std::string> reload();
    Result<std::string> release(const std::string& what);
    std::string history(const std::string& kind) const override { return measurements_.history(kind); }
    void status(OwnedAnswer answer) override { answer(OwnedText(status())); }
    void plan(OwnedAnswer answer) override { answer(OwnedText(plan())); }
    void explain(const std::string& subject, OwnedAnswer answer) override {
        auto text = explain(subject);
        if (!text) return answer(std::unexpected(text.error()));
        answer(OwnedText(std::move(*text)));
    }
    void reload(Answer answer) override { answer(reload()); }
    void release(const std::string& what, Answer answer) override { answer(release(what)); }
    void apply() override;

    [[nodiscard]] const World* world() const { return world_.get(); }
    [[nodiscard]] const Settings& settings() const { return parts_.settings; }

  private:
    [[nodiscard]] Result<std::unique_ptr<World>> load(std::string& diagnostics) const;
    void adopt(std::unique_ptr<World> world);
    void handle_process(inventory::Head head, std::optional<int> creator);
    /// Finds out which policy wants a process; nothing: it need not be looked at. `creator`: as for
    /// process_changed.
    [[nodiscard]] std::optional<Turn> begin_turn(inventory::Head head, std::optional<int> creator = {});
    /// Looks at its threads until `out_of_time` says so; true: at all of them.
    bool go_on(Turn& turn, const std::function<bool()>& out_of_time);
    void finish_turn(const Turn& turn);
    /// `creator`: the process whose thread made this one.
    void handle_thread(KnownProcess* process, std::optional<std::size_t> policy, const planner::Unit& unit,
                       int creator);
    void handle_fresh_thread(KnownProcess& process, const inventory::Thread& thread);
    void learn_cpuset(KnownProcess& process);
    [[nodiscard]] const CpuSet* cpuset_of(KnownProcess* process, const inventory::Thread& thread);
    void handle_action(KnownThread* known, const planner::Action& action);
    [[nodiscard]] bool expects_changes() const { return is_after_change_ || told_of_change_; }
    [[nodiscard]] bool is_fought_over(KnownThread& known, const planner::Action& action);
    /// A process no policy wants, but with something of ours on it, or on CPUs that a policy claims.
    [[nodiscard]] bool must_look_at(const inventory::Head& head, int creator) const;
    [[nodiscard]] bool is_released(int pid, std::size_t policy) const;
    [[nodiscard]] bool keeps_on_stop(std::string_view name) const;
    /// Gives tasks that were born with a mask of ours, and that no event has told of yet, what their creators
    /// got back.
    std::size_t put_back_newborns();
    void drop(int pid);
    void forget_thread(const TaskId& id, int pid);
    /// The journal lost lines: what is where a policy wants it, and in no line, may be our doing, and gets
    /// the kernel's default back.
    void adopt_lost(const planner::Subject& subject, const CpuSet& present, const std::string& policy);
    void adopt_lost_queues();
    /// Forgets those of these threads of a process that the kernel knows no more.
    void forget_gone_threads(int pid, std::span<const TaskId> threads);
    void finish_reconcile();
    void forget_gone();
    [[nodiscard]] Result<std::string> explain_task(int pid);
    [[nodiscard]] bool learn_serving();
    void handle_queues();
    void restore_unwanted_queues();
    void look_for_neighbours();

    /// A unit all of whose processes are under one policy that wants a cpuset for it.
    struct UnderCpuset {
        std::size_t policy = 0;
        std::string folder; ///< its control group
        std::string state;  ///< "in place", or why not
        bool keep = true;   ///< false: a fence that stands from before is taken away
    };
    void learn_unit(KnownProcess& process, const std::string& cgroup) const;
    void handle_units();
    [[nodiscard]] std::string fence(const std::string& name, UnderCpuset& unit, bool& changed);
    void follow_with_memory(KnownProcess& process);
    void hear_of_memory();
    void see_costs();
    void keep(std::vector<state::MeasurementRecord> records);

    Parts parts_;
    Executor executor_;
    QueueCare queue_care_;
    OtherWriters other_writers_;
    std::unique_ptr<World> world_;
    planner::Assignments assignments_;
    TaskTable tasks_;
    inventory::FactSources sources_;
    std::unique_ptr<Reconcile> reconcile_;
    std::set<std::string>
        released_; ///< names of policies, PIDs as text, "*": told to let go until the next reload or apply
    std::vector<Neighbour> neighbours_;
    std::map<std::string, UnderCpuset> units_; ///< by name, as of the last pass
    std::vector<planner::Problem> unit_problems_;
    Measurements measurements_;
    PassiveCost costs_;
    int next_asked_ = 0; ///< process with which find_used_nics goes on
    std::function<void(Urgency)> waits_ = [](Urgency) {};
    bool queues_changed_ = false;
    bool told_of_change_ = false;  ///< since the last pass began
    bool is_after_change_ = false; ///< the pass under way is the first since one
    std::uint64_t reconciles_ = 0;
    std::uint64_t lost_ = 0;
    std::size_t adopted_ = 0; ///< subjects whose line the journal may have lost
    bool is_adopted_ = true;  ///< all of them that the pass has come to could be written down
    std::uint64_t fast_ = 0;
    std::chrono::system_clock::time_point loaded_at_{};
};

} // namespace affinityd::app
