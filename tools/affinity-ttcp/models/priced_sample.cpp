// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/priced_sample.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::ttcp {

using measure::EndReport;
using measure::Outcome;

namespace {

bool takes_interrupt(const Testbed& testbed, unsigned irq) {
    return std::ranges::any_of(testbed.paths, [&](const Path& path) {
        return std::ranges::find(path.irqs, irq) != path.irqs.end();
    });
}

bool has_threads(const Testbed& testbed) {
    return std::ranges::all_of(testbed.paths, [](const Path& path) { return !path.threads.empty(); });
}

/// Without NAPI threads the interrupt work of the whole machine: the kernel does not account for it by NIC.
double interrupt_seconds(const Testbed& testbed, const RoundCosts& costs,
                         const std::vector<measure::CpuReport>& cpus) {
    if (has_threads(testbed)) return costs.threads_seconds;
    double sum = 0;
    for (const auto& cpu : cpus)
        sum += cpu.irq_seconds + cpu.softirq_seconds;
    return sum;
}

void price(Round& round, const EndReport& end, const Testbed& testbed, const RoundCosts& costs) {
    const double bits = 8 * static_cast<double>(round.sample.bytes);
    const bool threads = has_threads(testbed);
    const char* of = threads ? "the processes and NAPI threads under test"
                             : "the processes under test and all interrupt work of the machine";
    if (end.cycles && costs.threads_cycles && threads) {
        round.sample.cycles_per_bit = static_cast<double>(*end.cycles + *costs.threads_cycles) / bits;
        round.cycles_source = fmt::format("hardware counters of {}", of);
    } else if (costs.hz) {
        round.sample.cycles_per_bit = round.sample.cpu_seconds * *costs.hz / bits;
        round.cycles_source = fmt::format("CPU time of {} times {:.3f} GHz", of, *costs.hz / 1e9);
    } else {
        round.cycles_source = no_cost;
    }
}

} // namespace

std::expected<Round, RoundFault> make_round(const Testbed& testbed, bool receives, const Ends& ends,
                                            const RoundCosts& costs) {
    measure::Report both;
    both.outcome = Outcome::done;
    fill(both, ends, std::nullopt);
    if (both.outcome != Outcome::done) return std::unexpected(RoundFault{both.outcome, both.reason});
    const EndReport& end = receives ? *both.receiver : *both.transmitter;
    Round round;
    auto& sample = round.sample;
    sample.bits_per_second = both.bits_per_second;
    sample.bytes = both.bytes;
    sample.wall_seconds = both.seconds;
    sample.instructions = end.instructions;
    sample.cache_misses = end.cache_misses;
    sample.switches = end.voluntary_switches + end.involuntary_switches;
    sample.migrations = end.migrations;
    sample.retransmits = both.transmitter->retransmits;
    sample.cpus = cpus_between(costs.first, costs.last);
    for (auto& line : lines_between(costs.first, costs.last))
        if (takes_interrupt(testbed, line.irq)) sample.lines.push_back(std::move(line));
    sample.cpu_seconds =
        end.user_seconds + end.system_seconds + interrupt_seconds(testbed, costs, sample.cpus);
    price(round, end, testbed, costs);
    return round;
}

} // namespace affinityd::ttcp
