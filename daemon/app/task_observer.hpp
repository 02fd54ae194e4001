// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/task_table.hpp"
#include "inventory/process_scan.hpp"

namespace affinityd::app {

/// Whoever needs to see the processes under policy as they are looked at: units, memory, accounting.
class TaskObserver {
  public:
    virtual ~TaskObserver() = default;
    /// An event names this process, whether or not a policy wants it.
    virtual void named(const inventory::ProcessScan& process) = 0;
    /// A policy wants this process; its threads come next.
    virtual void matched(const KnownProcess& process, const inventory::ProcessFacts& facts) = 0;
    /// All its threads have been looked at.
    virtual void placed(const KnownProcess& process) = 0;
    /// It is no longer under its policy.
    virtual void left(const KnownProcess& process) = 0;
    /// An event, not a pass, brought a process under a policy, under another one, or out of it: NICs may need
    /// another number of lanes.
    virtual void came_or_went() = 0;
    /// A process or thread that an event named could not be read (no descriptor was left): a pass is wanted.
    virtual void missed() = 0;
    /// A process that an event named is not finished: step() has work.
    virtual void work_left() = 0;
};

} // namespace affinityd::app
