// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/facts.hpp"
#include "inventory/task.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace affinityd::inventory {

/// A process without its threads: what a matcher needs to say whether they are worth reading at all.
struct Head {
    TaskId id;
    std::string comm;
    unsigned flags = 0;
    std::unique_ptr<LazyFacts> facts; ///< never null
    [[nodiscard]] bool is_kernel() const { return (flags & pf_kthread) != 0; }
};

/// One stat file. Nothing: gone, or ended and not yet collected. References must outlive the head.
[[nodiscard]] std::optional<Head> read_head(const host::Root& root, int pid, FactSources* sources);

/// All threads of a process by ascending id; empty if it is gone.
[[nodiscard]] std::vector<Thread> read_threads(const host::Root& root, int pid);

/// Parent of a process, 0 for none; nothing if it is gone.
[[nodiscard]] std::optional<int> read_parent(const host::Root& root, int pid);

/// The process that a thread belongs to (Tgid of its status file).
[[nodiscard]] std::optional<int> read_process_id(const host::Root& root, int tid);

} // namespace affinityd::inventory
