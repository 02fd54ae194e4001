// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::enforcer {

/// A process whose memory is to be on certain NUMA nodes.
struct MemoryMove {
    TaskId process;             ///< by its main thread
    std::vector<unsigned> from; ///< nodes to clear; never one of `to`
    std::vector<unsigned> to;   ///< not empty
};

struct MemoryMoved {
    MemoryMove move;
    int code = 0;  ///< errno of the refusal; ESRCH: the process has gone
    long left = 0; ///< pages that could not be moved
    std::uint64_t took_ms = 0;
};

/// Moves memory one process at a time on a thread of its own, because the call lasts as long as the memory is
/// large, and rests after each so long that no more than `most_bytes_per_second` of resident memory are moved
/// in the mean.
class MemoryMover {
  public:
    static constexpr std::uint64_t most_bytes_per_second = 512ULL << 20;

    /// `root` must be live and outlive the mover.
    explicit MemoryMover(const host::Root& root) : root_(&root) {}

    /// Queues a move; one of the same process that still waits is replaced. The thread starts with the first.
    void ask(MemoryMove move);
    /// What has been done since the last call.
    [[nodiscard]] std::vector<MemoryMoved> take_done();

  private:
    void work(const std::stop_token& stop);
    [[nodiscard]] MemoryMoved carry_out(const MemoryMove& move) const;
    [[nodiscard]] std::uint64_t resident_bytes(int pid) const;

    const host::Root* root_;
    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::deque<MemoryMove> waiting_;
    std::vector<MemoryMoved> done_;
    std::jthread worker_; ///< last: it ends before what it uses
};

} // namespace affinityd::enforcer
