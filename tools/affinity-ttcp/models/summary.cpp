// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/summary.hpp"

#include "affinity-ttcp/models/sample.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace affinityd::ttcp {

using measure::Comparison;
using measure::Verdict;

namespace {

using measure::CpuReport;
using measure::LineReport;

/// Activity of each CPU, and how many interrupts it took of each line, over all rounds.
std::vector<CpuReport> cpus_of(const ModelResult& result) {
    std::vector<CpuReport> sums;
    for (const auto& sample : result.samples)
        for (const auto& part : sample.cpus) {
            auto at = std::ranges::find(sums, part.cpu, &CpuReport::cpu);
            if (at == sums.end()) at = sums.insert(sums.end(), CpuReport{part.cpu});
            at->user_seconds += part.user_seconds;
            at->system_seconds += part.system_seconds;
            at->irq_seconds += part.irq_seconds;
            at->softirq_seconds += part.softirq_seconds;
            at->interrupts += part.interrupts;
        }
    return sums;
}

std::vector<LineReport> lines_of(const ModelResult& result) {
    std::vector<LineReport> sums;
    for (const auto& sample : result.samples)
        for (const auto& part : sample.lines) {
            const auto at = std::ranges::find_if(
                sums, [&](const LineReport& sum) { return sum.irq == part.irq && sum.cpu == part.cpu; });
            if (at == sums.end())
                sums.push_back(part);
            else
                at->count += part.count;
        }
    return sums;
}

/// Of the rounds that have one.
template <class Get>
std::vector<double> values_of(const ModelResult& result, Get get) {
    std::vector<double> values;
    for (const auto& sample : result.samples)
        if (const std::optional<double> value = get(sample)) values.push_back(*value);
    return values;
}

std::vector<double> rates(const ModelResult& result) {
    return values_of(result, [](const ModelSample& sample) { return std::optional(sample.bits_per_second); });
}

double gigabits(const ModelSample& sample) { return 8e-9 * static_cast<double>(sample.bytes); }

/// CPU seconds for a gigabit or an exchange.
CostParts cpu_per_unit(const ModelSample& sample) {
    const double units = sample.exchanges ? static_cast<double>(sample.exchanges->count) : gigabits(sample);
    return units > 0 ? sample.cpu_seconds.times(1 / units) : CostParts{};
}

/// Cycles, or seconds where these are not known; a frequency that changes is part of the cost.
std::vector<double> costs(const ModelResult& result) {
    auto cycles = values_of(result, [](const ModelSample& sample) {
        return sample.cycles_per_bit ? std::optional(sample.cycles_per_bit->total()) : std::nullopt;
    });
    if (cycles.size() == result.samples.size()) return cycles;
    return values_of(result,
                     [](const ModelSample& sample) { return std::optional(cpu_per_unit(sample).total()); });
}

std::vector<double> exchange_values(const ModelResult& result, double ExchangeSample::*member) {
    return values_of(result, [&](const ModelSample& sample) {
        return sample.exchanges ? std::optional((*sample.exchanges).*member) : std::nullopt;
    });
}

/// Harmonic means are compared, which suit rates. A cost is the inverse of a rate (bits per cycle),
/// so the rates are compared and the result is inverted: over equal work, costs have the arithmetic mean.
Comparison compare_costs(const std::vector<double>& base, const std::vector<double>& changed,
                         unsigned comparisons) {
    const auto inverted = [](std::vector<double> values) {
        for (auto& value : values)
            value = 1 / value;
        return values;
    };
    auto result = measure::compare(inverted(base), inverted(changed), comparisons);
    if (result.verdict == Verdict::not_enough) return result;
    const auto turned = [](double change) { return 1 / (1 + change) - 1; };
    result.change = {turned(result.change.estimate), turned(result.change.high), turned(result.change.low)};
    if (result.verdict == Verdict::more)
        result.verdict = Verdict::less;
    else if (result.verdict == Verdict::less)
        result.verdict = Verdict::more;
    return result;
}

/// A count over what it is related to, round by round; a count that a round lacks is not known at all.
template <class Count, class Amount>
Rate rate_of(const ModelResult& result, Count count, Amount amount) {
    double sum = 0, all = 0;
    std::vector<double> each;
    for (const auto& sample : result.samples) {
        const std::optional<std::uint64_t> counted = count(sample);
        const double here = amount(sample);
        if (!counted || here <= 0) return {};
        sum += static_cast<double>(*counted);
        all += here;
        each.push_back(static_cast<double>(*counted) / here);
    }
    if (all <= 0) return {};
    return {sum / all, measure::average_interval(each)};
}

template <class Get>
PartIntervals parts_of(const ModelResult& result, Get get) {
    const auto of = [&](auto part) {
        return measure::average_interval(
            values_of(result, [&](const ModelSample& sample) -> std::optional<double> {
                const std::optional<CostParts> parts = get(sample);
                return parts ? part(*parts) : std::nullopt;
            }));
    };
    return {of([](const CostParts& parts) { return std::optional(parts.total()); }),
            of([](const CostParts& parts) { return std::optional(parts.processes); }),
            of([](const CostParts& parts) { return std::optional(parts.softirq); }),
            of([](const CostParts& parts) { return parts.interrupts; })};
}

PerSecond per_second_of(const ModelResult& result) {
    const auto of = [&](auto count) {
        return rate_of(result, count, [](const ModelSample& sample) { return sample.wall_seconds; });
    };
    return {of([](const ModelSample& sample) { return std::optional(sample.processes.switches); }),
            of([](const ModelSample& sample) { return sample.processes.migrations; }),
            of([](const ModelSample& sample) { return sample.processes.retransmits; }),
            of([](const ModelSample& sample) { return std::optional(sample.kernel.interrupts); }),
            of([](const ModelSample& sample) { return sample.kernel.ipis; }),
            of([](const ModelSample& sample) { return sample.kernel.net_rx; }),
            of([](const ModelSample& sample) { return sample.kernel.net_tx; })};
}

Rate per_bit(const ModelResult& result, std::optional<std::uint64_t> HardwareCounts::*member) {
    return rate_of(
        result, [&](const ModelSample& sample) { return sample.hardware.*member; },
        [](const ModelSample& sample) { return 8 * static_cast<double>(sample.bytes); });
}

std::vector<double> misses(const ModelResult& result) {
    return values_of(result, [](const ModelSample& sample) -> std::optional<double> {
        if (!sample.hardware.cache_misses || sample.bytes == 0) return std::nullopt;
        return static_cast<double>(*sample.hardware.cache_misses) / static_cast<double>(8 * sample.bytes);
    });
}

bool has_exchanges(const ModelResult& result) {
    return !result.samples.empty() && result.samples.front().exchanges;
}

ExchangeSummary exchanges_of(const ModelResult& result) {
    ExchangeSummary summary;
    summary.per_second = measure::mean_interval(values_of(result, [](const ModelSample& sample) {
        return sample.exchanges && sample.wall_seconds > 0
                   ? std::optional(static_cast<double>(sample.exchanges->count) / sample.wall_seconds)
                   : std::nullopt;
    }));
    summary.p50 = measure::average_interval(exchange_values(result, &ExchangeSample::p50_seconds));
    summary.p99 = measure::average_interval(exchange_values(result, &ExchangeSample::p99_seconds));
    return summary;
}

void compare_with(const ModelResult& base, const ModelResult& result, unsigned comparisons,
                  ModelSummary& summary) {
    summary.gain = measure::compare(rates(base), rates(result), comparisons);
    summary.cost.change = compare_costs(costs(base), costs(result), comparisons);
    summary.per_bit.misses_change = compare_costs(misses(base), misses(result), comparisons);
    if (!summary.exchanges) return;
    const auto changed = [&](double ExchangeSample::*member) {
        return compare_costs(exchange_values(base, member), exchange_values(result, member), comparisons);
    };
    summary.exchanges->p50_change = changed(&ExchangeSample::p50_seconds);
    summary.exchanges->p99_change = changed(&ExchangeSample::p99_seconds);
}

ModelSummary summary_of(const ModelResult& result) {
    ModelSummary summary;
    summary.model = result.model;
    summary.rounds = static_cast<unsigned>(result.samples.size());
    summary.bits_per_second = measure::mean_interval(rates(result));
    summary.cost.cycles_per_bit = parts_of(result, [](const ModelSample& s) { return s.cycles_per_bit; });
    summary.cost.cpu_seconds =
        parts_of(result, [](const ModelSample& s) { return std::optional(cpu_per_unit(s)); });
    summary.per_bit = {per_bit(result, &HardwareCounts::instructions).mean,
                       per_bit(result, &HardwareCounts::cache_misses),
                       {}};
    double wall = 0, cpu = 0;
    for (const auto& sample : result.samples) {
        wall += sample.wall_seconds;
        cpu += sample.cpu_seconds.total();
    }
    if (wall > 0) summary.busy_cpus = cpu / wall;
    summary.per_second = per_second_of(result);
    if (has_exchanges(result)) summary.exchanges = exchanges_of(result);
    summary.cpus = cpus_of(result);
    summary.lines = lines_of(result);
    return summary;
}

/// Of each model against the first: gain and cost; both latencies; misses, where they are counted.
unsigned comparisons_of(const std::vector<ModelResult>& results) {
    if (results.empty()) return 1;
    std::size_t each = 2;
    if (has_exchanges(results.front())) each += 2;
    if (!misses(results.front()).empty()) each += 1;
    return static_cast<unsigned>(each * (std::max<std::size_t>(results.size(), 2) - 1));
}

} // namespace

std::vector<ModelSummary> summarize(const std::vector<ModelResult>& results) {
    std::vector<ModelSummary> summaries;
    const auto comparisons = comparisons_of(results);
    for (const auto& result : results) {
        summaries.push_back(summary_of(result));
        if (&result != &results.front()) compare_with(results.front(), result, comparisons, summaries.back());
    }
    return summaries;
}

std::string describe(const Comparison& comparison) {
    const auto& change = comparison.change;
    const auto percent_of = [](double part) { return measure::signed_percent(part, 1); };
    switch (comparison.verdict) {
    case Verdict::not_enough:
        return std::string(to_string(comparison.verdict));
    case Verdict::none_shown:
        return fmt::format("{} ({} to {} %)", to_string(comparison.verdict), percent_of(change.low),
                           percent_of(change.high));
    case Verdict::more:
    case Verdict::less:
        return fmt::format("{} % ({} to {})", percent_of(change.estimate), percent_of(change.low),
                           percent_of(change.high));
    }
    return {};
}

} // namespace affinityd::ttcp
