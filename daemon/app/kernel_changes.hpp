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

    /// Interfaces, CPUs or cpusets have changed.
    void expect() { set(true, is_after_change_); }
    void begin_pass() { set(false, announced_ || is_after_change_); }
    void end_pass() { set(announced_, false); }

    [[nodiscard]] bool expected() const { return announced_ || is_after_change_; }
    /// True from the change until a pass begins: nobody has looked at all tasks since.
    [[nodiscard]] bool is_fresh() const { return announced_; }

  private:
    void set(bool announced, bool is_after_change) {
        announced_ = announced;
        is_after_change_ = is_after_change;
        executor_.expect_changes(expected());
    }
    enforcer::Executor& executor_;
    bool announced_ = false;
    bool is_after_change_ = false;
};

} // namespace affinityd::app
