// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/commands.hpp"
#include "core/shared.hpp"
#include "core/tasks.hpp"
#include "planner/matcher.hpp"

#include <memory>

namespace affinityd::core {

/// Threads that put themselves somewhere, as far as the policy of their process lets them. What they asked
/// for is a fact about them, like their names: this notes it, and the way of tasks places them.
///
/// It lasts until the thread ends, leaves, or its process comes under another policy or is released, or the
/// daemon ends; execve(2), passes and reloads come and go meanwhile. Where a reload takes the slot away it
/// has no force until the slot is back.
class Joins final : public Joining {
  public:
    /// References must outlive it.
    Joins(Shared& shared, Tasks& tasks) : shared_(shared), current_(shared.current), tasks_(tasks) {}

    JoinAnswer ask(const JoinRequest& request) override;
    [[nodiscard]] bool may_ask(uid_t user) override;
    void charge(uid_t user, std::chrono::nanoseconds time) override;

    void begin_stop() { is_stopping_ = true; }

  private:
    struct Asking;
    [[nodiscard]] JoinOutcome find_asker(Asking& asking);
    [[nodiscard]] bool is_released(int pid) const;
    [[nodiscard]] KnownProcess* find_process(Asking& asking);
    [[nodiscard]] JoinOutcome carry_out(Asking& asking);
    [[nodiscard]] JoinOutcome join(const Asking& asking);
    [[nodiscard]] JoinOutcome serve(const Asking& asking);
    [[nodiscard]] JoinOutcome move_to(const Asking& asking, unsigned cpu);
    using Wanted = std::shared_ptr<const planner::Joined>; ///< null: nothing
    [[nodiscard]] Wanted find(const Asking& asking) const;
    [[nodiscard]] const KnownThread* place(const Asking& asking, Wanted wanted);
    [[nodiscard]] const KnownThread* place(const Asking& asking);

    Shared& shared_;
    const Current& current_;
    Tasks& tasks_;
    bool is_stopping_ = false;
};

} // namespace affinityd::core
