// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/accept_round.hpp"
#include "inventory/reading_thread.hpp"

#include <optional>
#include <vector>

namespace affinityd::inventory {

/// Reads the listeners of processes on a thread of its own.
class AcceptList {
  public:
    /// `root` is this machine's, and must outlive it.
    explicit AcceptList(const host::Root& root);

    /// These processes are to be read; see ReadingThread.
    bool ask(std::vector<TaskId> processes) { return thread_.ask(std::move(processes)); }
    [[nodiscard]] int fd() const { return thread_.fd(); }
    [[nodiscard]] std::optional<std::vector<AcceptSockets>> take() { return thread_.take(); }

  private:
    AcceptReader reader_; ///< the thread's, as is
    AcceptRound round_;
    ReadingThread<std::vector<TaskId>, std::vector<AcceptSockets>> thread_;
};

} // namespace affinityd::inventory
