// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace affinityd::ttcp {

/// The use of one process between Meter::start and Meter::stop. A figure that the machine does not give has
/// no value; it is never 0.
struct Usage {
    double user_seconds = 0;   ///< CPU time, getrusage(2)
    double system_seconds = 0; ///< in the kernel; includes softirq work done in its context
    std::uint64_t voluntary_switches = 0;
    std::uint64_t involuntary_switches = 0;
    std::optional<std::uint64_t>
        migrations; ///< moves between CPUs: se.nr_migrations of /proc/PID/sched, or perf's
    std::optional<std::uint64_t> cycles; ///< hardware counters, user and kernel, perf_event_open(2)
    std::optional<std::uint64_t> instructions;
    std::optional<std::uint64_t> cache_misses; ///< last level

    Usage& operator+=(const Usage& other); ///< a figure that one side lacks has no value in the sum
};
static_assert(std::is_trivially_copyable_v<Usage>);

/// A sum is known only if all its parts are.
void add_known(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& part);

/// A counter of perf_event_open(2).
struct CounterKind {
    std::uint32_t type = 0;
    std::uint64_t config = 0;
    bool in_kernel = true; ///< in kernel mode, too
    int group = -1;        ///< the counter that it shares the hardware with; -1: none
};
/// Counts of a thread (0: the calling one) from now on. Closed, with errno, where this machine has none or
/// does not allow it.
[[nodiscard]] host::Fd open_counter(const CounterKind& kind, int tid = 0);
/// The count, scaled up if the kernel took the hardware away for part of the time.
[[nodiscard]] std::optional<std::uint64_t> read_counter(const host::Fd& counter);

/// CPU cycles of another thread from now on, user and kernel.
class CycleCounter {
  public:
    explicit CycleCounter(int tid);
    [[nodiscard]] std::optional<std::uint64_t>
    read() const; ///< no value: no hardware counters, or not allowed

  private:
    host::Fd counter_;
};

/// Measures the calling process. Opens its counters when made, so that starting and stopping are cheap.
class Meter {
  public:
    Meter();
    void start();
    [[nodiscard]] Usage stop();

  private:
    struct Reading {
        Usage usage;
        std::array<std::optional<std::uint64_t>, 4> counts;
    };
    [[nodiscard]] Reading read() const;
    std::array<host::Fd, 4>
        counters_;  ///< cycles, instructions, cache misses, migrations; closed where this machine has none
    bool has_file_; ///< of migrations
    Reading first_{};
};

} // namespace affinityd::ttcp
