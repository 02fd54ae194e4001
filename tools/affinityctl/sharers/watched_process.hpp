// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "inventory/process_scan.hpp"

#include <optional>
#include <string>

namespace affinityctl {

/// The process that is watched, as it is now: one that executes another program meanwhile gets its name.
struct WatchedProcess {
    int pid = 0;
    std::string name; ///< any bytes
    std::string unit; ///< its system service; "": it is in none
    /// What they were when the watch began, if they are others now.
    std::optional<std::string> former_name{}, former_unit{};
};

[[nodiscard]] WatchedProcess watched_process(const affinityd::inventory::ProcessScan& scan);

/// Reads name and service again. False: the process, by its main thread, has ended, and nothing is changed.
[[nodiscard]] bool look_again(const affinityd::host::Root& root, const affinityd::TaskId& id,
                              WatchedProcess& process);

} // namespace affinityctl
