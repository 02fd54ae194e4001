// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/executor.hpp"

namespace affinityd::app {

/// Whether masks may have changed without anybody's doing: what the kernel and its drivers do when CPUs,
/// cpusets or interfaces change is no fight, and no drift to give way to. The first pass after such a change
/// knows of it.
class KernelChanges {
  public:
    explicit KernelChanges(enforcer::Executor& executor) : executor_(executor) {}

    /// CPUs or cpusets have changed.
    void expect() {
        tasks_.is_announced = true;
        expect_of_queues();
    }
    /// Interfaces have changed, which changes no mask of a task.
    void expect_of_queues() {
        queues_.is_announced = true;
        tell();
    }
    void begin_pass() {
        for (auto* term : {&tasks_, &queues_})
            *term = {false, term->is_expected()};
        tell();
        executor_.begin_pass();
    }
    /// The end: no pass follows.
    void stop() {
        tasks_ = queues_ = {};
        tell();
    }
    void end_pass() {
        for (auto* term : {&tasks_, &queues_})
            term->is_after_change = false;
        tell();
    }

    /// True if masks of tasks may have changed.
    [[nodiscard]] bool expected() const { return tasks_.is_expected(); }
    /// True from such a change until a pass begins: nobody has looked at all tasks since.
    [[nodiscard]] bool is_fresh() const { return tasks_.is_announced; }

  private:
    struct Term {
        bool is_announced = false;
        bool is_after_change = false;
        [[nodiscard]] bool is_expected() const { return is_announced || is_after_change; }
    };
    void tell() { executor_.expect_changes({tasks_.is_expected(), queues_.is_expected()}); }
    enforcer::Executor& executor_;
    Term tasks_, queues_;
};

} // namespace affinityd::app
