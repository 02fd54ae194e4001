// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/answers.hpp"
#include "app/balance.hpp"
#include "app/bookkeeping.hpp"
#include "app/coexistence.hpp"
#include "app/commands.hpp"
#include "app/joins.hpp"
#include "app/load.hpp"
#include "app/pass.hpp"
#include "app/queues.hpp"
#include "app/steering.hpp"
#include "app/tasks.hpp"
#include "app/undo.hpp"
#include "app/units.hpp"
#include "app/work.hpp"

#include <functional>
#include <string>
#include <vector>

namespace affinityd::app {

/// Wires the ways of tasks, queues, units and listeners together: it owns them, says in which order a pass
/// uses them, and answers commands. The event loop calls it from one thread; it never waits, and long work is
/// cut into steps.
class Daemon final : public Commands {
  public:
    /// References must outlive the manager.
    struct Parts {
        const host::Root& root;
        state::Journal journal; ///< taken by the executor
        enforcer::Enforcer& enforcer;
        enforcer::UnitProperties& unit_properties;
        Log& log;
        Settings settings;
        /// Reads what the settings' file says now; empty: it is not read again.
        ReadSettings reread_settings{};
    };
    explicit Daemon(Parts parts);

    /// Loads policies and the machine. An Error: nothing can run. Files with errors are left out.
    Result<void> start();
    /// Begins a pass over all tasks, queues and units. `machine_changed`: the hardware is read again first.
    void begin_pass(bool machine_changed);
    /// CPUs or cpusets have changed, and with them masks on their own: the next pass takes that for nobody's
    /// doing.
    void expect_changes() { carrying_.changes.expect(); }
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
    /// False while systemd or irqbalance still owes an answer, which takes a bounded time.
    [[nodiscard]] bool is_quiet() const { return !units_.is_busy() && !coexistence_.is_talking(); }
    /// A measuring child has ended, or could not be started; the answer to who asked for it.
    Result<std::string> measured(const measure::Run& run);

    [[nodiscard]] Work& work() { return work_; }
    [[nodiscard]] Tasks& tasks() { return tasks_; }
    [[nodiscard]] Queues& queues() { return queues_; }
    [[nodiscard]] Steering& steering() { return steering_; }
    /// Those that other programs talk with.
    struct Talking {
        Coexistence& coexistence;
        Joining& joins;
    };
    [[nodiscard]] Talking talking() { return {coexistence_, carrying_.joins}; }
    /// What is in force; a reload changes all of it.
    struct InForce {
        const Settings& settings;
        const status::LoadStatus& load;
        const World* world;
    };
    [[nodiscard]] InForce in_force() const {
        return {parts_.settings, shared_.loading.status(), shared_.current.world.get()};
    }

    void status(OwnedAnswer answer) override;
    void plan(OwnedAnswer answer) override;
    void explain(const std::string& subject, OwnedAnswer answer) override;
    [[nodiscard]] Result<std::string> history(const std::string& kind) override;
    void reload(Answer answer, Until until, ReloadReason reason) override;
    /// True if the files that policies are read from are others than at the last reading.
    [[nodiscard]] bool policies_changed() const { return shared_.loading.has_changed(); }
    void release(const std::string& what, Answer answer, Until until) override;
    void apply(Answer answer, Until until) override;

  private:
    /// What all ways look at.
    struct Shared {
        Loading loading;
        Problems problems;
        PassAnswers answers;
        LatencySource latencies;
        Current current{};
        Releases releases{};
        bool machine_changed = false; ///< the next pass reads the hardware again
        bool is_stopping = false;
        bool events_are_next = false; ///< what events have left and other work take turns
        std::uint64_t events_lost = 0;
        std::chrono::system_clock::time_point started_at = std::chrono::system_clock::now();
        std::chrono::system_clock::time_point loaded_at{};
    };
    /// What changes the machine, and what must be known for it.
    struct Carrying {
        enforcer::Executor executor;
        KernelChanges changes;
        Undo undo;
        Joins joins;
    };
    [[nodiscard]] std::unique_ptr<Job> make_pass();
    void end_duties(const char* why);
    [[nodiscard]] std::unique_ptr<Sequence> begin_last_costs();
    void use(std::shared_ptr<World> world, ReloadReason reason);
    [[nodiscard]] bool claims_nothing(std::string_view policy);
    [[nodiscard]] bool has_targets(const std::string& nic) const;

    Parts parts_;
    Shared shared_;
    Work work_;
    Carrying carrying_;
    Coexistence coexistence_;
    Units units_;
    Followers followers_;
    Tasks tasks_;
    Bookkeeping bookkeeping_;
    Queues queues_;
    Steering steering_;
    Balancer balancer_;
};

} // namespace affinityd::app
