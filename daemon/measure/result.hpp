// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::measure {

/// How a measurement ended. Each is recorded; none is an Error.
enum class Outcome {
    done,        ///< a figure that may be compared
    skipped,     ///< not begun: the machine or the NIC was busy, or no run is wanted
    unreachable, ///< the peer could not be reached
    peer_gone,   ///< the peer left during the run
    link_lost,   ///< the path to the peer broke: cable, interface, route
    timed_out,   ///< no progress, or not over within its bound
    killed,      ///< a signal ended it
    failed,      ///< anything else; the reason says what
};
[[nodiscard]] std::string_view to_string(Outcome outcome);
[[nodiscard]] std::optional<Outcome> parse_outcome(std::string_view text);

/// All streams of one end together.
struct EndReport {
    std::uint64_t bytes = 0;
    std::uint64_t calls = 0; ///< send(2) or recv(2)
    double user_seconds = 0; ///< CPU time of the stream processes
    double system_seconds = 0;
    std::uint64_t voluntary_switches = 0;
    std::uint64_t involuntary_switches = 0;
    std::optional<std::uint64_t> migrations, retransmits, cycles, instructions,
        cache_misses; ///< no value: this machine does not count them
    friend bool operator==(const EndReport&, const EndReport&) = default;
};

/// The work of a CPU during the run, for any process: /proc/stat, in ticks of some 10 ms.
struct CpuReport {
    unsigned cpu = 0;
    double user_seconds = 0, system_seconds = 0, irq_seconds = 0, softirq_seconds = 0;
    std::uint64_t interrupts = 0; ///< of numbered lines, /proc/interrupts
    friend bool operator==(const CpuReport&, const CpuReport&) = default;
};

/// Interrupts of one numbered line on one CPU during the run; only where there were any.
struct LineReport {
    unsigned irq = 0;
    std::string label; ///< name of its handler: "virtio3-input.0", "eth0-TxRx-1"
    unsigned cpu = 0;
    std::uint64_t count = 0;
    friend bool operator==(const LineReport&, const LineReport&) = default;
};

/// The task of a run.
struct Setup {
    std::string path;                    ///< "loopback", or the peer as host:port
    bool touches_nic_interrupts = false; ///< loopback never does
    unsigned streams = 0;
    std::uint64_t buffer_bytes = 0;
    friend bool operator==(const Setup&, const Setup&) = default;
};

/// A ttcp run, as the program prints it with --json and the daemon keeps it.
struct Report {
    Outcome outcome = Outcome::failed;
    std::string reason; ///< for a person; "" with Outcome::done
    Setup setup;
    double seconds = 0;      ///< wall time from the first byte to the last
    std::uint64_t bytes = 0; ///< that arrived; of a far end that is another program, those the kernel took
    double bits_per_second = 0;
    std::optional<EndReport> transmitter, receiver; ///< the ends that ran here
    std::optional<double> ghz_per_gbps;             ///< cycles per bit of the ends that ran here
    std::string cycles_source;                      ///< where the cycles come from, for a person
    std::vector<CpuReport> cpus;
    std::vector<LineReport> lines;
    friend bool operator==(const Report&, const Report&) = default;
};

/// The version of the JSON document.
inline constexpr unsigned report_version = 1;

/// A line of JSON without a line end.
[[nodiscard]] std::string to_json(const Report& report);

/// Reads it back. Strict, because the text comes from another process: an unknown or missing key, a wrong
/// type, a negative or absurd number, control characters or more than 1 MiB are an Error that names the key.
[[nodiscard]] Result<Report> parse_report(std::string_view text);

} // namespace affinityd::measure
