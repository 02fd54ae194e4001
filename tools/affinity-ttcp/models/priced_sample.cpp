// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/priced_sample.hpp"

#include <algorithm>

namespace affinityd::ttcp {

using measure::EndReport;
using measure::Outcome;

namespace {

bool takes_interrupt(const Testbed& testbed, unsigned irq) {
    return std::ranges::any_of(testbed.paths, [&](const Path& path) {
        return std::ranges::find(path.irqs, irq) != path.irqs.end();
    });
}

ExchangeSample exchanges_of(const LatencyCounts& latencies) {
    return {latencies.total(), latencies.quantile(0.5).value_or(0) * 1e-9,
            latencies.quantile(0.99).value_or(0) * 1e-9};
}

} // namespace

std::expected<Round, RoundFault> make_round(const Testbed& testbed, Work work, const RoundEnds& both,
                                            const RoundCosts& costs) {
    measure::Report report;
    report.outcome = Outcome::done;
    fill(report, both.ends, std::nullopt);
    if (report.outcome != Outcome::done) return std::unexpected(RoundFault{report.outcome, report.reason});
    const EndReport& end = work == Work::transmit ? *report.transmitter : *report.receiver;
    const auto cost = cost_of(testbed, end, costs);
    Round round{{}, cost.cycles_source, cost.parts_note};
    auto& sample = round.sample;
    sample.bits_per_second = report.bits_per_second;
    sample.bytes = report.bytes;
    sample.wall_seconds = report.seconds;
    sample.cpu_seconds = cost.cpu_seconds;
    if (cost.cycles) sample.cycles_per_bit = cost.cycles->times(1 / (8 * static_cast<double>(report.bytes)));
    sample.hardware = {end.instructions, end.cache_misses};
    sample.processes = {end.voluntary_switches + end.involuntary_switches, end.migrations,
                        report.transmitter->retransmits};
    sample.kernel = counts_between(costs.first, costs.last);
    if (work == Work::answer) sample.exchanges = exchanges_of(both.latencies);
    sample.cpus = cpus_between(costs.first, costs.last);
    for (auto& line : lines_between(costs.first, costs.last))
        if (takes_interrupt(testbed, line.irq)) sample.lines.push_back(std::move(line));
    return round;
}

} // namespace affinityd::ttcp
