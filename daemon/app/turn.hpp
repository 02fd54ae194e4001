// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/head.hpp"
#include "inventory/task_reader.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace affinityd::app {

/// One process whose threads are being looked at, and how far that has come: of a process with thousands of
/// threads it is left and taken up again, as of the list of processes.
struct Turn {
    inventory::Head head;
    int parent = 0;                    ///< the process that made it
    std::optional<std::size_t> policy; ///< that wants it, as index into the world's set
    inventory::TaskReader reader;
    std::vector<inventory::Thread> threads{};
    std::size_t next = 0;  ///< of `threads`
    bool is_read = false;  ///< `threads` is what the reader found
    bool was_left = false; ///< since something of it was read: what events told meanwhile is newer
};

} // namespace affinityd::app
