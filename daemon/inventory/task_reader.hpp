// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/numbered.hpp"
#include "inventory/scan.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace affinityd::inventory {

/// Reads one process with its threads, and can stop between any two of them.
class TaskReader {
  public:
    TaskReader(const host::Root& root, int pid, FactSources* sources)
        : root_(&root), sources_(sources), pid_(pid) {}

    /// True: finished. Asks `out_of_time` after every thread.
    bool step(const std::function<bool()>& out_of_time);
    /// The result of a finished reader; nothing: the process is gone.
    std::optional<Process> take();

  private:
    enum class Stage { start, list, threads, done };
    Stage read_main();
    Stage list_new();
    void read_next();

    const host::Root* root_;
    FactSources* sources_;
    int pid_;
    Stage stage_ = Stage::start;
    int rounds_ = 0;
    std::shared_ptr<ProcessFacts> facts_;
    std::vector<Thread> threads_;
    std::optional<NumberedEntries> tasks_;
    std::vector<int> seen_;   ///< ascending
    std::vector<int> listed_; ///< kept for its memory
    std::vector<int> fresh_;  ///< of this round, not yet read from next_ on
    std::size_t next_ = 0;
};

} // namespace affinityd::inventory
