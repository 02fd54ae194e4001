// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/task_table.hpp"
#include "app/world.hpp"
#include "inventory/process_scan.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace affinityd::app {

/// Why a process is looked at.
struct ProcessChange {
    std::optional<int> creator{}; ///< the process that forked it, if it was born
    bool has_changed = true;      ///< false: nothing is known to have changed, its time has come
    bool is_executed = false;     ///< it runs another program
    bool has_lost_main = false;   ///< its main thread has ended; if there is one again, it was another thread
};

/// One process whose threads are being looked at, and how far that has come: a process with thousands of
/// threads is left and taken up again.
struct Turn {
    inventory::ProcessScan scan;
    ProcessChange change{};            ///< the creator is known always
    std::optional<std::size_t> policy; ///< that wants it, as index into the world's set
    std::shared_ptr<World> world; ///< in force when it began: another set has other indices; null: it is over
    std::vector<inventory::Thread> threads{};
    std::size_t next = 0;       ///< of `threads`
    bool is_read = false;       ///< `threads` has been read
    bool is_incomplete = false; ///< some of its threads could not be read: another pass is to look at it
    /// Known threads that the scan did not find, once it is through.
    std::optional<std::vector<TaskId>> unseen{};
    KnownCpuset cpuset{}; ///< of a process that no policy wants
    std::optional<ProcessChange>
        again{};           ///< an event has named it again: it wants another turn after this one
    bool was_left = false; ///< since some of it was read: what events said meanwhile is newer
};

} // namespace affinityd::app
