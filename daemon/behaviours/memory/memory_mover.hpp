// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::behaviours {

/// A process whose memory is to be on certain NUMA nodes.
struct MemoryMove {
    TaskId process;              ///< by its main thread
    std::vector<unsigned> from;  ///< nodes to clear; never one of `to`
    std::vector<unsigned> to;    ///< not empty
    bool is_interleaved = false; ///< it is spread over `to`; `from` does not count
};

struct MemoryMoved {
    MemoryMove move;
    int code = 0;  ///< errno of the refusal; ESRCH: the process has gone
    long left = 0; ///< pages that could not be moved
    std::uint64_t took_ms = 0;
};

/// Moves memory one process at a time on a thread of its own, because the call lasts as long as the memory is
/// large. A process can keep the call from coming back (one of its pages lies on a file system in user
/// space that does not answer): at the end, the thread is waited for for a second, then left to itself.
class MemoryMover {
  public:
    /// host::migrate_pages
    using Migrate = std::function<std::expected<long, int>(int pid, const std::vector<unsigned>& from,
                                                           const std::vector<unsigned>& to)>;

    /// `root` must be live and outlive the mover.
    explicit MemoryMover(const host::Root& root, Migrate migrate = {});
    MemoryMover(const MemoryMover&) = delete;
    MemoryMover& operator=(const MemoryMover&) = delete;
    ~MemoryMover();

    /// Queues a move; one of the same process that still waits is replaced. The thread starts with the first.
    void ask(MemoryMove move);
    /// The moves done since the last call.
    [[nodiscard]] std::vector<MemoryMoved> take_done();

  private:
    struct State;
    std::shared_ptr<State> state_; ///< the thread's, too
};

} // namespace affinityd::behaviours
