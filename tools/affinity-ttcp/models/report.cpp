// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/report.hpp"

#include "affinity-ttcp/models/sample.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <vector>

namespace affinityd::ttcp {

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

std::optional<double> over(const std::optional<std::uint64_t>& count, double amount) {
    if (!count || amount <= 0) return std::nullopt;
    return static_cast<double>(*count) / amount;
}

/// `first` is the total of the parts that follow it.
std::optional<double> part_of(const CostParts& parts, Figure first, Figure figure) {
    switch (static_cast<int>(figure) - static_cast<int>(first)) {
    case 0:
        return parts.total();
    case 1:
        return parts.processes;
    case 2:
        return parts.softirq;
    default:
        return parts.interrupts;
    }
}

/// In one round; no value: it does not have this figure.
std::optional<double> value_of(Figure figure, const ModelSample& sample) {
    const double bits = 8 * static_cast<double>(sample.bytes), seconds = sample.wall_seconds;
    const auto& exchanges = sample.exchanges;
    switch (figure) {
    case Figure::bits_per_second:
        return sample.bits_per_second;
    case Figure::exchanges_per_second:
        return exchanges ? over(exchanges->count, seconds) : std::nullopt;
    case Figure::p50:
        return exchanges ? std::optional(exchanges->p50_seconds) : std::nullopt;
    case Figure::p99:
        return exchanges ? std::optional(exchanges->p99_seconds) : std::nullopt;
    case Figure::cycles:
    case Figure::cycles_processes:
    case Figure::cycles_softirq:
    case Figure::cycles_interrupts:
        if (!sample.cycles_per_bit) return std::nullopt;
        return part_of(*sample.cycles_per_bit, Figure::cycles, figure);
    case Figure::cpu:
    case Figure::cpu_processes:
    case Figure::cpu_softirq:
    case Figure::cpu_interrupts: {
        const double units = exchanges ? static_cast<double>(exchanges->count) : 1e-9 * bits;
        if (units <= 0) return std::nullopt;
        return part_of(sample.cpu_seconds.times(1 / units), Figure::cpu, figure);
    }
    case Figure::busy_cpus:
        return seconds > 0 ? std::optional(sample.cpu_seconds.total() / seconds) : std::nullopt;
    case Figure::instructions:
        return over(sample.hardware.instructions, bits);
    case Figure::cache_misses:
        return over(sample.hardware.cache_misses, bits);
    case Figure::switches:
        return over(sample.processes.switches, seconds);
    case Figure::migrations:
        return over(sample.processes.migrations, seconds);
    case Figure::retransmits:
        return over(sample.processes.retransmits, seconds);
    case Figure::interrupts:
        return over(sample.kernel.interrupts, seconds);
    case Figure::ipis:
        return over(sample.kernel.ipis, seconds);
    case Figure::net_rx:
        return over(sample.kernel.net_rx, seconds);
    case Figure::net_tx:
        return over(sample.kernel.net_tx, seconds);
    }
    return std::nullopt;
}

bool is_rate(Figure figure) {
    return figure == Figure::bits_per_second || figure == Figure::exchanges_per_second;
}

/// By round; empty if one does not have it.
std::vector<double> values_of(Figure figure, const ModelResult& result) {
    std::vector<double> values;
    for (const auto& sample : result.samples)
        if (const auto value = value_of(figure, sample)) values.push_back(*value);
    return values.size() == result.samples.size() ? values : std::vector<double>();
}

/// `base`: the values of the first model; empty for that itself.
Measured measured(Figure figure, const std::vector<double>& values, const std::vector<double>& base,
                  unsigned comparisons) {
    if (is_rate(figure))
        return {measure::harmonic_mean(values), measure::mean_interval(values),
                measure::compare(base, values, comparisons)};
    double sum = 0;
    for (const double value : values)
        sum += value;
    return {values.empty() ? std::nullopt : std::optional(sum / static_cast<double>(values.size())),
            measure::average_interval(values), measure::compare_times(base, values, comparisons)};
}

/// For each model against the first: gain and cost; both latencies; misses, where they are counted.
unsigned comparisons_of(const std::vector<ModelResult>& results) {
    if (results.empty()) return 1;
    std::size_t each = 2;
    if (!values_of(Figure::p50, results.front()).empty()) each += 2;
    if (!values_of(Figure::cache_misses, results.front()).empty()) each += 1;
    return static_cast<unsigned>(each * (std::max<std::size_t>(results.size(), 2) - 1));
}

} // namespace

std::vector<ModelSummary> summarize(const std::vector<ModelResult>& results) {
    std::vector<ModelSummary> summaries;
    const auto comparisons = comparisons_of(results);
    for (const auto& result : results) {
        ModelSummary summary{result.model,
                             static_cast<unsigned>(result.samples.size()),
                             {},
                             cpus_of(result),
                             lines_of(result)};
        const bool is_first = &result == &results.front();
        for (std::size_t i = 0; i < figure_count; ++i) {
            const auto figure = static_cast<Figure>(i);
            summary.figures[i] =
                measured(figure, values_of(figure, result),
                         is_first ? std::vector<double>() : values_of(figure, results.front()), comparisons);
        }
        summaries.push_back(std::move(summary));
    }
    return summaries;
}

const PointResult* main_point(const ModelsReport& report) {
    const PointResult* found = nullptr;
    for (const auto& each : report.points)
        if (found == nullptr ||
            (each.point.work == found->point.work && each.point.bytes > found->point.bytes))
            found = &each;
    return found;
}

bool has_rounds(const ModelsReport& report) {
    return std::ranges::any_of(report.points, [](const PointResult& point) {
        return std::ranges::any_of(point.models, [](const auto& model) { return !model.samples.empty(); });
    });
}

} // namespace affinityd::ttcp
