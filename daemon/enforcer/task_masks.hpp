// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/enforcer.hpp"
#include "host/scheduler.hpp"

#include <functional>

namespace affinityd::enforcer {

/// Reads and sets the masks of tasks. sched_setaffinity(2) takes a number, which may mean another task from
/// one moment to the next. So its identity is made sure of before the mask is set and afterwards, and a task
/// that was hit in the place of another gets back what it was born with.
class TaskMasks {
  public:
    /// How masks are set and tasks held on to: another one in tests.
    struct Kernel {
        std::function<int(int tid, const CpuSet& cpus)> set = host::set_affinity;
        std::function<host::TaskHandle(int tid)> hold = host::TaskHandle::open;
    };
    /// `root` must outlive it.
    explicit TaskMasks(const host::Root& root);
    TaskMasks(const host::Root& root, Kernel kernel) : root_(root), kernel_(std::move(kernel)) {}

    [[nodiscard]] Applied write(const machine::TaskMask& subject, const planner::Action& action) const;
    /// The unfiltered mask (status shows offline CPUs too), because it is what has to be put back.
    [[nodiscard]] Result<std::optional<machine::Setting>> read(const machine::TaskMask& subject) const;
    /// True for the main thread of a process that has others.
    [[nodiscard]] bool may_return(const machine::TaskMask& subject) const;

  private:
    [[nodiscard]] Result<bool> is_same(const machine::TaskMask& subject) const;
    [[nodiscard]] bool is_still(const machine::TaskMask& subject, const host::TaskHandle& handle) const;
    [[nodiscard]] Applied take_back(int tid, const CpuSet& to) const;
    const host::Root& root_;
    Kernel kernel_;
};

} // namespace affinityd::enforcer
