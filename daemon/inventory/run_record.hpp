// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace affinityd::inventory {

/// What the scheduler has counted of one thread since its birth.
struct RunRecord {
    std::uint64_t start_time = 0; ///< clock ticks since boot: tells a later thread of the same number apart
    int cpu = 0;                  ///< where it runs or ran last: field 39 of proc_pid_stat(5)
    std::uint64_t run_ns =
        0; ///< time on a CPU: /proc/PID/task/TID/schedstat, else utime + stime in clock ticks
    std::optional<std::uint64_t>
        migrations; ///< se.nr_migrations of /proc/PID/task/TID/sched; a kernel may be built without
};

/// No value: the thread is gone, or the text is no such line.
[[nodiscard]] std::optional<RunRecord> read_run_record(const host::Root& root, int pid, int tid);

/// For how long a thread ran, and waited for a CPU.
struct SchedTime {
    std::uint64_t run_ns = 0;
    std::uint64_t wait_ns = 0;
};

/// Since its birth. No value: it is gone, or the kernel does not count that (CONFIG_SCHED_INFO).
[[nodiscard]] std::optional<SchedTime> read_sched_time(const host::Root& root, int pid, int tid);

/// Its parts, pure. `ticks`: clock ticks per second, > 0.
[[nodiscard]] std::optional<RunRecord> parse_run_record(std::string_view stat, long ticks);
/// Nanoseconds: the first number of schedstat, Documentation/scheduler/sched-stats.rst.
[[nodiscard]] std::optional<std::uint64_t> parse_schedstat(std::string_view text);
/// Its first two numbers.
[[nodiscard]] std::optional<SchedTime> parse_sched_time(std::string_view schedstat);
[[nodiscard]] std::optional<std::uint64_t> parse_migrations(std::string_view sched);

} // namespace affinityd::inventory
