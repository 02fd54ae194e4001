// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace affinityd {

/// A thread (or a process, by its main thread) that cannot be mistaken for a later one with the same number.
struct TaskId {
    int tid = 0;                  ///< kernel thread id, > 0; equals the process id for a main thread
    std::uint64_t start_time = 0; ///< clock ticks since boot: field 22 of /proc/PID/stat, proc_pid_stat(5)

    friend auto operator<=>(const TaskId&, const TaskId&) = default;
};

} // namespace affinityd

template <>
struct std::hash<affinityd::TaskId> {
    std::size_t operator()(const affinityd::TaskId& id) const noexcept {
        return std::hash<std::uint64_t>{}(id.start_time * 0x9e3779b97f4a7c15ULL +
                                          static_cast<unsigned>(id.tid));
    }
};
