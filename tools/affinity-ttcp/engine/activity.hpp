// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/socket.hpp"
#include "irq/irq.hpp"
#include "measure/result.hpp"

#include <cstdint>
#include <optional>
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

/// The difference of the two. CPUs and lines that are not in both are left out; a counter that went back
/// (the line was freed and requested again) counts as 0.
[[nodiscard]] std::vector<measure::CpuReport> cpus_between(const Activity& first, const Activity& last);
[[nodiscard]] std::vector<measure::LineReport> lines_between(const Activity& first, const Activity& last);
/// Part of all CPU time that was not idle, 0 to 1; no value if no time has passed.
[[nodiscard]] std::optional<double> busy_between(const Activity& first, const Activity& last);

/// Counts of the kernel between two moments, of the whole machine.
struct KernelCounts {
    std::uint64_t interrupts = 0; ///< of numbered lines: devices
    /// Interrupts that CPUs sent each other. x86: rescheduling and function calls (TLB shootdowns are among
    /// these, arch/x86/kernel/irq.c); ARM and RISC-V: IPI0 and so on. No value: this machine does not count
    /// them.
    std::optional<std::uint64_t> ipis;
    std::optional<std::uint64_t> net_rx, net_tx; ///< softirqs, /proc/softirqs
};
[[nodiscard]] KernelCounts counts_between(const Activity& first, const Activity& last);

/// Whether this kernel measures the time in interrupts (CONFIG_IRQ_TIME_ACCOUNTING, or exact accounting as on
/// s390). Without it a handler's time is that of whatever it interrupted, and the column of /proc/stat stays
/// 0 however many interrupts come, because the timer tick, which samples, never interrupts a handler.
[[nodiscard]] bool tells_interrupt_time(const Activity& activity);

/// CPU frequency in Hz: the mean of what cpufreq reports for the online CPUs, else of "cpu MHz" in
/// /proc/cpuinfo. No value where the machine gives neither (most ARM servers in virtual machines).
[[nodiscard]] std::optional<double> read_frequency(const host::Root& root);

/// How busy the machine is before a measurement adds to it.
struct Busyness {
    std::optional<double> cpus; ///< part of all CPU time, 0 to 1; no value: unknown
    std::string nic;            ///< the interface that leads to the peer, "" for loopback or if unknown
    std::optional<double>
        link; ///< the busier direction's part of its speed; no value: no interface, or it reports no speed
};

/// Observes for that many seconds. `peer` is the far end of the measurement; no value: this machine.
[[nodiscard]] Busyness look_around(const host::Root& root, const std::optional<Address>& peer,
                                   double seconds);

/// Why a measurement should not begin now, "" if it may. `bound`: 0 to 1.
[[nodiscard]] std::string why_busy(const Busyness& busyness, double bound);

} // namespace affinityd::ttcp
