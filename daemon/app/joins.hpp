// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/joined_tasks.hpp"
#include "app/joining.hpp"
#include "app/log.hpp"
#include "app/releases.hpp"
#include "app/tasks.hpp"
#include "app/world.hpp"
#include "state/joined_threads.hpp"

#include <functional>
#include <optional>

namespace affinityd::app {

/// Threads that put themselves somewhere, as far as the policy of their process lets them. What they asked
/// for is a fact about them, like their names: this notes it, and the way of tasks places them.
///
/// It lasts until the thread ends, leaves, or its process comes under another policy; execve(2), passes,
/// reloads and daemons come and go meanwhile. Where a reload takes the slot away it has no force until the
/// slot is back.
class Joins final : public Joining, public JoinedTasks {
  public:
    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        const Current& current;
        Tasks& tasks;
        const Releases& releases;
        std::function<void()> wants_pass; ///< what has joined is to be tidied up
        Log& log;
    };
    /// `path`: of the file that says so to the next daemon; "": none.
    Joins(Parts parts, const std::string& path);

    JoinAnswer ask(const JoinRequest& request) override;
    [[nodiscard]] uid_t person(uid_t user) override { return parts_.tasks.sources().person(user); }

    [[nodiscard]] const planner::Joined* find(const TaskId& thread) const override {
        return threads_.find(thread);
    }
    void ended(const TaskId& thread) override;
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
    void tell(const Result<void>& written);

    Parts parts_;
    state::JoinedThreads threads_;
    bool is_stopping_ = false;
};

} // namespace affinityd::app
