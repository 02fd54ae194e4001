// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"
#include "measure/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::ttcp {

/// How often each kind of softirq ran since boot, over all CPUs.
using SoftirqCounts = std::vector<std::pair<std::string, std::uint64_t>>;

/// The text of /proc/softirqs; lines that fit not its form are passed over.
[[nodiscard]] SoftirqCounts parse_softirqs(std::string_view text);

/// Time by CPU since boot, proc_stat(5). User time includes guest time.
struct CpuTime {
    unsigned cpu = 0;
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0; ///< seconds
    [[nodiscard]] double busy() const { return user + nice + system + irq + softirq + steal; }
    friend bool operator==(const CpuTime&, const CpuTime&) = default;
};

/// The "cpuN" lines of /proc/stat; malformed lines are skipped. Columns that an older kernel lacks are 0.
[[nodiscard]] std::vector<CpuTime> parse_cpu_times(std::string_view text, double ticks_per_second);

/// The machine at one moment.
struct Activity {
    double at = 0; ///< CLOCK_MONOTONIC seconds
    std::vector<CpuTime> cpus;
    irq::InterruptTable interrupts;
    SoftirqCounts softirqs{};
};
[[nodiscard]] Activity read_activity(const host::Root& root);

/// What happened between the two. CPUs and lines that are not in both are left out; a counter that went back
/// (the line was freed and requested again) counts as 0.
[[nodiscard]] std::vector<measure::CpuReport> cpus_between(const Activity& first, const Activity& last);
[[nodiscard]] std::vector<measure::LineReport> lines_between(const Activity& first, const Activity& last);
/// Part of all CPU time that was not idle, 0 to 1; no value if no time has passed.
[[nodiscard]] std::optional<double> busy_between(const Activity& first, const Activity& last);

} // namespace affinityd::ttcp
