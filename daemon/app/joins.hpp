// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "app/load.hpp"
#include "app/log.hpp"
#include "app/place_thread.hpp"
#include "app/tasks.hpp"
#include "app/undo.hpp"
#include "app/work.hpp"
#include "planner/matcher.hpp"

#include <optional>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// Threads that put themselves somewhere, as far as the policy of their process lets them. What they asked
/// for is a fact about them, like their names: this notes it, and the way of tasks places them.
///
/// It lasts until the thread ends, leaves, or its process comes under another policy, or the daemon ends;
/// execve(2), passes and reloads come and go meanwhile. Where a reload takes the slot away it has no force
/// until the slot is back. Bounded to 32,768 threads.
class Joins final : public Joining, public JoinedTasks {
  public:
    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        const Current& current;
        Tasks& tasks;
        const Releases& releases;
    };
    explicit Joins(const Parts& parts) : parts_(parts) {}

    JoinAnswer ask(const JoinRequest& request) override;
    [[nodiscard]] bool may_ask(uid_t user) override;
    void charge(uid_t user, std::chrono::nanoseconds time) override;

    [[nodiscard]] const planner::Joined* find(const TaskId& thread) const override;
    void ended(const TaskId& thread) override { threads_.erase(thread); }
    /// It is where its packets arrive: not to be moved for what a re-deal gains.
    [[nodiscard]] bool serves(const TaskId& task) const;
    /// The pass has looked at all tasks: forgets those that are no longer there. True: all of them.
    [[nodiscard]] bool tidy(const OutOfTime& out_of_time);
    void begin_stop() { is_stopping_ = true; }

  private:
    struct Asking;
    [[nodiscard]] JoinOutcome find_asker(Asking& asking);
    [[nodiscard]] bool is_released(int pid) const;
    [[nodiscard]] KnownProcess* find_process(Asking& asking);
    [[nodiscard]] JoinOutcome carry_out(Asking& asking);
    [[nodiscard]] JoinOutcome join(const Asking& asking);
    [[nodiscard]] JoinOutcome leave(const Asking& asking);
    [[nodiscard]] JoinOutcome serve(const Asking& asking);
    [[nodiscard]] JoinOutcome move_to(const Asking& asking, unsigned cpu);
    void note(const Asking& asking, std::optional<planner::Joined> joined);
    [[nodiscard]] const KnownThread* place(const Asking& asking);
    [[nodiscard]] bool is_there(const TaskId& thread, int pid, const planner::Joined& joined) const;

    struct Joiner {
        int pid = 0;
        planner::Joined joined;
    };
    Parts parts_;
    std::unordered_map<TaskId, Joiner> threads_;
    std::optional<std::vector<TaskId>> doubtful_; ///< of tidy(), still to be looked at
    bool is_stopping_ = false;
};

} // namespace affinityd::app
