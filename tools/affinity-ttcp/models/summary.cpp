// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/summary.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::ttcp {

using measure::Comparison;
using measure::CpuReport;
using measure::LineReport;
using measure::Verdict;

namespace {

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

std::vector<double> costs(const ModelResult& result) {
    return values_of(result, [](const ModelSample& sample) { return sample.cycles_per_bit; });
}

/// The bootstrap works on harmonic means, which suit rates. A cost is the inverse of a rate (bits per cycle),
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

void add_cpus(std::vector<CpuReport>& sums, const std::vector<CpuReport>& parts) {
    for (const auto& part : parts) {
        auto at =
            std::find_if(sums.begin(), sums.end(), [&](const CpuReport& sum) { return sum.cpu == part.cpu; });
        if (at == sums.end()) at = sums.insert(sums.end(), CpuReport{part.cpu});
        at->user_seconds += part.user_seconds;
        at->system_seconds += part.system_seconds;
        at->irq_seconds += part.irq_seconds;
        at->softirq_seconds += part.softirq_seconds;
        at->interrupts += part.interrupts;
    }
}

void add_lines(std::vector<LineReport>& sums, const std::vector<LineReport>& parts) {
    for (const auto& part : parts) {
        const auto at = std::find_if(sums.begin(), sums.end(), [&](const LineReport& sum) {
            return sum.irq == part.irq && sum.cpu == part.cpu;
        });
        if (at == sums.end())
            sums.push_back(part);
        else
            at->count += part.count;
    }
}

/// No value if a round has none.
std::optional<double> sum_per(const ModelResult& result, double amount,
                              std::optional<std::uint64_t> ModelSample::*member) {
    std::uint64_t sum = 0;
    for (const auto& sample : result.samples) {
        if (!(sample.*member)) return std::nullopt;
        sum += *(sample.*member);
    }
    if (amount <= 0) return std::nullopt;
    return static_cast<double>(sum) / amount;
}

ModelSummary summary_of(const ModelResult& result, const ModelResult& base, unsigned comparisons) {
    ModelSummary summary;
    summary.model = result.model;
    summary.rounds = static_cast<unsigned>(result.samples.size());
    summary.bits_per_second = measure::mean_interval(rates(result));
    summary.cycles_per_bit = measure::mean_interval(costs(result));
    double wall = 0, cpu = 0, bits = 0;
    std::uint64_t switches = 0;
    for (const auto& sample : result.samples) {
        wall += sample.wall_seconds;
        cpu += sample.cpu_seconds;
        bits += 8 * static_cast<double>(sample.bytes);
        switches += sample.switches;
        add_cpus(summary.cpus, sample.cpus);
        add_lines(summary.lines, sample.lines);
    }
    summary.busy_cpus = wall > 0 ? cpu / wall : 0;
    summary.per_second = {wall > 0 ? static_cast<double>(switches) / wall : 0,
                          sum_per(result, wall, &ModelSample::migrations),
                          sum_per(result, wall, &ModelSample::retransmits)};
    summary.instructions_per_bit = sum_per(result, bits, &ModelSample::instructions);
    summary.cache_misses_per_bit = sum_per(result, bits, &ModelSample::cache_misses);
    if (&result != &base) {
        summary.gain = measure::compare(rates(base), rates(result), comparisons);
        summary.cost = compare_costs(costs(base), costs(result), comparisons);
    }
    return summary;
}

} // namespace

std::vector<ModelSummary> summarize(const std::vector<ModelResult>& results) {
    std::vector<ModelSummary> summaries;
    const auto comparisons =
        static_cast<unsigned>(2 * (std::max<std::size_t>(results.size(), 2) - 1)); // gain and cost of each
    for (const auto& result : results)
        summaries.push_back(summary_of(result, results.front(), comparisons));
    return summaries;
}

std::string describe(const Comparison& comparison) {
    const auto& change = comparison.change;
    switch (comparison.verdict) {
    case Verdict::not_enough:
        return std::string(to_string(comparison.verdict));
    case Verdict::none_shown:
        return fmt::format("{} ({:+.1f} to {:+.1f} %)", to_string(comparison.verdict), 100 * change.low,
                           100 * change.high);
    case Verdict::more:
    case Verdict::less:
        return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", 100 * change.estimate, 100 * change.low,
                           100 * change.high);
    }
    return {};
}

} // namespace affinityd::ttcp
