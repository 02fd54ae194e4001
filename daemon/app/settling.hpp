// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/later_looks.hpp"
#include "app/load.hpp"
#include "app/task_table.hpp"
#include "inventory/facts.hpp"

#include <cstdint>
#include <optional>

namespace affinityd::app {

/// Has processes looked at again although no event names them: new ones when they have settled, and those
/// that may come under another policy by what they do next.
class Settling {
  public:
    /// References must outlive it.
    Settling(const host::Root& root, const Current& current, const TaskTable& table,
             inventory::FactSources& sources, LaterLooks& later)
        : root_(root), current_(current), table_(table), sources_(sources), later_(later) {}

    /// A process is looked at that a policy wants. If it is new to it, or runs another program, it begins to
    /// settle; if its time has come, it has settled. Who was there long before the daemon has, too.
    void looked(KnownProcess& process, bool is_new, bool is_executed);
    /// It has several threads, the newest with that start time: it has settled when it has made no more for a
    /// quarter of the time.
    void made_threads(KnownProcess& process, std::uint64_t newest);
    /// `policy`: the one that wants the process now, if any does. `has_changed`: an event has named it.
    void look_later(const inventory::ProcessFacts& facts, std::optional<std::size_t> policy,
                    bool has_changed);

  private:
    const host::Root& root_;
    const Current& current_;
    const TaskTable& table_;
    inventory::FactSources& sources_;
    LaterLooks& later_;
};

} // namespace affinityd::app
