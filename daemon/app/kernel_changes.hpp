// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace affinityd::app {

/// Whether masks may have changed without anybody's doing: what the kernel and its drivers do when CPUs, cpusets or
/// interfaces change is no fight, and no drift to give way to. The first pass after such a change knows of it.
class KernelChanges {
  public:
    /// Interfaces, CPUs or cpusets have changed.
    void expect() { announced_ = true; }
    void begin_pass() { is_after_change_ = std::exchange(announced_, false) || is_after_change_; }
    void end_pass() { is_after_change_ = false; }

    [[nodiscard]] bool expected() const { return announced_ || is_after_change_; }
    /// True from the change until a pass begins: nobody has looked at all tasks since.
    [[nodiscard]] bool is_fresh() const { return announced_; }

  private:
    bool announced_ = false;
    bool is_after_change_ = false;
};

} // namespace affinityd::app
