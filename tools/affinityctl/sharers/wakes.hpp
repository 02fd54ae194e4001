// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace affinityctl {

/// A thread of the process that was watched.
struct WokenThread {
    std::string name; ///< as last seen; any bytes
    /// Place among the threads that live, by thread id, 0 for the main thread, as a policy's `index` counts;
    /// no value: it has ended.
    std::optional<unsigned> index;
    std::uint64_t by_interrupts =
        0;                       ///< times that an interrupt woke it (a timer, a device), on no task's behalf
    std::uint64_t by_others = 0; ///< times that another process or the kernel did
    std::optional<unsigned> pages_group{}; ///< threads of one number have touched the same pages
};

/// Which threads of one process woke each other from waiting for a futex, a pipe, a socket or the like.
struct Wakes {
    using Thread = affinityd::TaskId;
    double seconds = 0; ///< for so long
    std::map<Thread, WokenThread> threads;
    /// (waker, wakee) -> times; both are in `threads`.
    std::map<std::pair<Thread, Thread>, std::uint64_t> pairs;
    /// There were very many: for how many one that was seen stands, at most. 1: each was counted.
    std::uint64_t heaviest = 1;
    std::uint64_t lost = 0; ///< wake-ups between pairs for which the kernel's table had no room
    std::uint64_t unnamed =
        0; ///< times that its table of threads had none: by_interrupts, by_others lack them
};

} // namespace affinityctl
