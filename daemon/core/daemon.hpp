// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/commands.hpp"
#include "core/pass.hpp"
#include "core/queues.hpp"
#include "core/shared.hpp"
#include "core/task_status.hpp"
#include "core/tasks.hpp"
#include "core/undo.hpp"
#include "load/load.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace affinityd::core {

/// Owns the ways of tasks, queues, units and listeners, says in which order a pass uses them, and answers
/// commands. The event loop calls it from one thread; it never waits, and long work is cut into steps.
class Daemon final : public Commands {
  public:
    /// `reread_settings` reads what the settings' file says now; empty: it is not read again. All
    /// that the arguments refer to must outlive the daemon.
    explicit Daemon(Shared& shared, ReadSettings reread_settings = {});
    ~Daemon() override { shared_.behaviours.clear(); } // they refer to this
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;
    /// Before start().
    void add(std::unique_ptr<Behaviour> behaviour) { shared_.behaviours.push_back(std::move(behaviour)); }

    /// Loads policies and the machine. An Error: nothing can run. Files with errors are left out.
    Result<void> start();
    /// Reads the policies again, with the texts that behaviours lay over them. `headline`: begins the answer;
    /// "": it is a reload, which faults of other files make an Error.
    [[nodiscard]] Slices read_policies(Answer answer, Until until, ReloadReason reason,
                                       std::string headline = {});
    [[nodiscard]] const Loading& loading() const { return loading_; }
    /// Releases have changed, or processes have come or gone: claims of CPUs follow.
    void update_claims();
    /// Begins a pass over all tasks, queues and units. `machine_changed`: the hardware is read again first.
    void begin_pass(bool machine_changed);
    /// CPUs or cpusets have changed, and with them masks on their own: the next pass takes that for the
    /// kernel's doing.
    void expect_changes() { shared_.executor.expect_changes(true); }
    /// An interface has changed: its queues are put right at once, before any task is looked at. "": which
    /// one is not known.
    void link_changed(const std::string& nic);
    /// Process events were lost: everything is looked at again.
    void events_lost();
    /// Works until `out_of_time` says so. True: there is nothing left to do.
    bool step(const OutOfTime& out_of_time);
    /// Begins to put back what the policies say is to be put back; `done` is called when all but is_quiet()
    /// is over.
    void begin_stop(std::function<void()> done);
    /// Begins to end, and leaves all in place and on record for the next daemon. Else as begin_stop().
    void begin_handover(std::function<void()> done);
    /// False while an answer is owed to a behaviour, which takes a bounded time.
    [[nodiscard]] bool is_quiet() const {
        return std::ranges::all_of(shared_.behaviours, [](const auto& one) { return one->is_quiet(); });
    }
    /// A measuring child has ended, or could not be started; the answer to who asked for it.
    Result<std::string> measured(const measure::Run& run);

    [[nodiscard]] Shared& shared() { return shared_; }
    [[nodiscard]] Work& work() { return shared_.work; }
    [[nodiscard]] Tasks& tasks() { return tasks_; }
    [[nodiscard]] Queues& queues() { return queues_; }
    /// Null: threads can ask for nothing.
    [[nodiscard]] Joining* joining();
    /// All that is in force; a reload changes all of it.
    struct InForce {
        const Settings& settings;
        const status::LoadStatus& load;
        const World* world;
    };
    [[nodiscard]] InForce in_force() const {
        return {shared_.settings, loading_.status(), shared_.current.world.get()};
    }
    /// True if the files that policies are read from are others than at the last reading.
    [[nodiscard]] bool policies_changed() { return loading_.has_changed(); }

    void status(OwnedAnswer answer) override;
    void plan(OwnedAnswer answer) override;
    void explain(const std::string& subject, OwnedAnswer answer) override;
    [[nodiscard]] Result<std::string> history(const std::string& kind) override;
    [[nodiscard]] Result<std::string> names() override;
    void run(Order order) override;
    void reload(Answer answer, Until until, ReloadReason reason) override;
    void release(const std::string& what, uid_t user, Answer answer, Until until) override;
    void apply(Answer answer, Until until) override;

  private:
    class Pass;
    struct Basis;
    using Time = std::chrono::system_clock::time_point;

    [[nodiscard]] Slices pass();
    [[nodiscard]] Slices reread_machine();
    [[nodiscard]] bool awaits_listeners(std::chrono::steady_clock::time_point until);
    [[nodiscard]] bool look_after_journal();
    [[nodiscard]] std::vector<Overlay> overlays() const;
    [[nodiscard]] Result<std::shared_ptr<World>> end_loading(Loaded loaded);
    void use(std::shared_ptr<World> world, ReloadReason reason);
    void use_reloaded(Loaded loaded, Answer answer, Until until, ReloadReason reason, std::string headline);
    [[nodiscard]] planner::Released without_claims();
    [[nodiscard]] Slices restore_released(std::string what, std::optional<int> pid, Answer answer);
    void end_duties(const char* why, bool is_handover);
    [[nodiscard]] Slices hand_over(std::function<void()> done);
    [[nodiscard]] Slices stop(std::function<void()> done);
    [[nodiscard]] Slices answer_status(OwnedAnswer answer);
    [[nodiscard]] Slices answer_plan(OwnedAnswer answer);
    [[nodiscard]] Slices answer_explain(int pid, OwnedAnswer answer);
    void drop_others(planner::Assignments& assignments, const TaskId& id, std::optional<std::size_t> policy);
    [[nodiscard]] planner::ThreadPlan plan_thread(const inventory::ProcessScan& scan,
                                                  std::optional<std::size_t> policy,
                                                  const inventory::Thread& thread, unsigned index,
                                                  planner::Assignments& assignments);
    [[nodiscard]] status::ProcessExplanation explain_process(const World& world,
                                                             const inventory::ProcessScan& scan,
                                                             std::vector<planner::Verdict> verdicts);
    [[nodiscard]] status::ThreadExplanation
    explain_thread(const World& world, std::optional<std::size_t> policy, const inventory::Thread& thread,
                   unsigned index, planner::ThreadPlan plan, status::ProcessExplanation& of);
    [[nodiscard]] std::vector<status::Finding> present_problems();
    [[nodiscard]] std::vector<status::Finding> problems();
    [[nodiscard]] status::Overview overview(const Holdings& holdings);

    Shared& shared_;
    ReadSettings reread_settings_;
    Loading loading_;
    PassAnswers answers_;
    Undo undo_;
    Tasks tasks_;
    Queues queues_;
    bool machine_changed_ = false; ///< the next pass reads the hardware again
    bool is_stopping_ = false;
    bool events_are_next_ = false; ///< events' unfinished work and other work take turns
    std::uint64_t events_lost_ = 0;
    std::chrono::steady_clock::time_point events_lost_at_{}; ///< the last time
    Time started_at_ = std::chrono::system_clock::now(), loaded_at_{};
    std::chrono::steady_clock::duration pass_length_{};    ///< of the last one
    Time last_pass_{};                                     ///< its end; the epoch: there was none
    std::unordered_map<std::string, Time> known_problems_; ///< since when
};

} // namespace affinityd::core
