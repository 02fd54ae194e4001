// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/figures.hpp"

#include "affinity-ttcp/engine/outcome.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace affinityd::ttcp {

using measure::EndReport;
using measure::Outcome;
using measure::Report;

namespace {

std::optional<EndReport> sum_of(const std::vector<StreamUse>& uses) {
    if (uses.empty()) return std::nullopt;
    EndReport end;
    Usage usage = uses.front().usage;
    end.retransmits = 0;
    for (std::size_t i = 0; i < uses.size(); ++i) {
        if (i > 0) usage += uses[i].usage;
        end.bytes += uses[i].bytes;
        end.calls += uses[i].calls;
        add_known(end.retransmits, uses[i].retransmits);
    }
    end.user_seconds = usage.user_seconds;
    end.system_seconds = usage.system_seconds;
    end.voluntary_switches = usage.voluntary_switches;
    end.involuntary_switches = usage.involuntary_switches;
    end.migrations = usage.migrations;
    end.cycles = usage.cycles;
    end.instructions = usage.instructions;
    end.cache_misses = usage.cache_misses;
    return end;
}

void fill_cost(Report& report, std::optional<double> hz) {
    const double bits = static_cast<double>(report.bytes) * 8;
    if (bits <= 0) return;
    double cpu_seconds = 0;
    std::uint64_t cycles = 0;
    bool counted = true;
    for (const auto* end : {&report.transmitter, &report.receiver}) {
        if (!*end) continue;
        cpu_seconds += (*end)->user_seconds + (*end)->system_seconds;
        counted = counted && (*end)->cycles.has_value();
        cycles += (*end)->cycles.value_or(0);
    }
    if (counted) {
        report.ghz_per_gbps = static_cast<double>(cycles) / bits;
        report.cycles_source = "hardware counters of the stream processes";
    } else if (hz) {
        report.ghz_per_gbps = cpu_seconds * *hz / bits;
        report.cycles_source = fmt::format(
            "CPU time of the stream processes times {:.3f} GHz (no hardware counters)", *hz / 1e9);
    } else {
        report.cycles_source = no_cost;
    }
}

} // namespace

void fill(Report& report, const Ends& ends, std::optional<double> hz) {
    report.transmitter = sum_of(ends.transmitted);
    report.receiver = sum_of(ends.received);
    const auto& arrived = ends.received.empty() ? ends.transmitted : ends.received;
    double first = std::numeric_limits<double>::infinity(), last = 0;
    for (const auto& use : arrived) {
        report.bytes += use.bytes;
        if (use.is_local) report.setup.touches_nic_interrupts = false;
        if (use.bytes == 0) continue;
        first = std::min(first, use.started);
        last = std::max(last, use.ended);
    }
    report.seconds = last > first ? last - first : 0;
    if (report.seconds > 0) report.bits_per_second = static_cast<double>(report.bytes) * 8 / report.seconds;
    if (report.bytes == 0) note(report, Outcome::failed, "no bytes were moved");
    fill_cost(report, hz);
}

} // namespace affinityd::ttcp
