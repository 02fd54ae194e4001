// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/print.hpp"

#include <cctype>
#include <cmath>

#include <fmt/format.h>

namespace affinityd::ttcp {

namespace {

using measure::EndReport;
using measure::Outcome;
using measure::Report;

/// "1234.56 KB/sec". As in ttcp, a lower-case unit means bits in powers of 1000, an upper-case one bytes in
/// powers of 1024.
std::string rate(double bits_per_second, char unit) {
    const bool is_bits = std::islower(static_cast<unsigned char>(unit)) != 0;
    const int power = std::toupper(static_cast<unsigned char>(unit)) == 'K'   ? 1
                      : std::toupper(static_cast<unsigned char>(unit)) == 'M' ? 2
                                                                              : 3;
    const double value =
        is_bits ? bits_per_second / std::pow(1000, power) : bits_per_second / 8 / std::pow(1024, power);
    return fmt::format("{:.2f} {}{}", value,
                       static_cast<char>(std::toupper(static_cast<unsigned char>(unit))),
                       is_bits ? "bit/sec" : "B/sec");
}

std::string known(const std::optional<std::uint64_t>& value) {
    return value ? fmt::format("{}", *value) : "not known";
}

void print_end(std::FILE* out, const char* name, const Options& options, const Report& report,
               const EndReport& end) {
    const double seconds = report.seconds;
    const double bits = seconds > 0 ? static_cast<double>(end.bytes) * 8 / seconds : 0;
    const auto calls = static_cast<double>(end.calls);
    const double cpu = end.user_seconds + end.system_seconds;
    fmt::print(out, "{}: {} bytes in {:.2f} real seconds = {} +++\n", name, end.bytes, seconds,
               rate(bits, options.unit));
    fmt::print(out, "{}: {} I/O calls, msec/call = {:.4f}, calls/sec = {:.2f}\n", name, end.calls,
               calls > 0 ? seconds * 1000 / calls : 0, seconds > 0 ? calls / seconds : 0);
    fmt::print(out, "{}: {:.2f}user {:.2f}sys {:.2f}real {:.0f}% {}+{}csw, migrations: {}, retransmits: {}\n",
               name, end.user_seconds, end.system_seconds, seconds, seconds > 0 ? 100 * cpu / seconds : 0,
               end.voluntary_switches, end.involuntary_switches, known(end.migrations),
               known(end.retransmits));
    if (end.cycles)
        fmt::print(out, "{}: {} cycles, {} instructions, {} cache misses\n", name, *end.cycles,
                   known(end.instructions), known(end.cache_misses));
    if (end.cache_misses && end.bytes > 0)
        fmt::print(out, "{}: {:.6f} cache misses per bit\n", name,
                   static_cast<double>(*end.cache_misses) / (8 * static_cast<double>(end.bytes)));
}

} // namespace

void print(std::FILE* out, const Options& options, const Report& report) {
    const auto& load = options.session.load;
    fmt::print(out, "ttcp: buflen={}, streams={}, path={}{}\n", load.buffer_bytes, report.setup.streams,
               report.setup.path, report.setup.touches_nic_interrupts ? "" : " (touches no NIC interrupt)");
    if (report.transmitter) print_end(out, "ttcp-t", options, report, *report.transmitter);
    if (report.receiver) print_end(out, "ttcp-r", options, report, *report.receiver);
    if (report.ghz_per_gbps)
        fmt::print(out, "ttcp: {:.3f} GHz/Gbps, by {}\n", *report.ghz_per_gbps, report.cycles_source);
    for (const auto& cpu : report.cpus)
        fmt::print(out,
                   "ttcp: CPU {}: {:.2f}user {:.2f}sys {:.2f}irq {:.2f}softirq, {} interrupts (all that ran "
                   "there)\n",
                   cpu.cpu, cpu.user_seconds, cpu.system_seconds, cpu.irq_seconds, cpu.softirq_seconds,
                   cpu.interrupts);
    for (const auto& line : report.lines)
        fmt::print(out, "ttcp: IRQ {} {}: {} on CPU {}\n", line.irq, line.label, line.count, line.cpu);
    if (report.outcome != Outcome::done)
        fmt::print(out, "ttcp: {}: {}\n", to_string(report.outcome), report.reason);
}

} // namespace affinityd::ttcp
