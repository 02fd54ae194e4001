// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/report.hpp"

#include "affinity-ttcp/models/sample.hpp"
#include "measure/report_json.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include <fmt/format.h>

namespace affinityd::ttcp {

using measure::Comparison;
using measure::or_null;
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

/// The values of the rounds that have one.
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
    summary.cost.change = measure::compare_times(costs(base), costs(result), comparisons);
    summary.per_bit.misses_change = measure::compare_times(misses(base), misses(result), comparisons);
    if (!summary.exchanges) return;
    const auto changed = [&](double ExchangeSample::*member) {
        return measure::compare_times(exchange_values(base, member), exchange_values(result, member),
                                      comparisons);
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

/// For each model against the first: gain and cost; both latencies; misses, where they are counted.
unsigned comparisons_of(const std::vector<ModelResult>& results) {
    if (results.empty()) return 1;
    std::size_t each = 2;
    if (has_exchanges(results.front())) each += 2;
    if (!misses(results.front()).empty()) each += 1;
    return static_cast<unsigned>(each * (std::max<std::size_t>(results.size(), 2) - 1));
}

using nlohmann::json;

json interval_json(const std::optional<measure::Interval>& interval) {
    if (!interval) return nullptr;
    return {{"estimate", interval->estimate}, {"low", interval->low}, {"high", interval->high}};
}

json comparison_json(const measure::Comparison& comparison) {
    json value{{"verdict", to_string(comparison.verdict)}};
    if (comparison.verdict == measure::Verdict::not_enough) return value;
    value["change"] = interval_json(comparison.change);
    return value;
}

json parts_json(const PartIntervals& parts) {
    return {{"total", interval_json(parts.total)},
            {"processes", interval_json(parts.processes)},
            {"softirq", interval_json(parts.softirq)},
            {"interrupts", interval_json(parts.interrupts)}};
}

json per_second_json(const PerSecond& rates) {
    return {{"context_switches", interval_json(rates.switches.interval)},
            {"migrations", interval_json(rates.migrations.interval)},
            {"retransmits", interval_json(rates.retransmits.interval)},
            {"interrupts", interval_json(rates.interrupts.interval)},
            {"ipis", interval_json(rates.ipis.interval)},
            {"net_rx_softirqs", interval_json(rates.net_rx.interval)},
            {"net_tx_softirqs", interval_json(rates.net_tx.interval)}};
}

json exchanges_json(const std::optional<ExchangeSummary>& exchanges) {
    if (!exchanges) return nullptr;
    return {{"per_second", interval_json(exchanges->per_second)},
            {"p50_seconds", interval_json(exchanges->p50)},
            {"p50_change", comparison_json(exchanges->p50_change)},
            {"p99_seconds", interval_json(exchanges->p99)},
            {"p99_change", comparison_json(exchanges->p99_change)}};
}

json sample_json(const ModelSample& sample) {
    json value{{"bits_per_second", sample.bits_per_second},
               {"bytes", sample.bytes},
               {"seconds", sample.wall_seconds},
               {"cpu_seconds", sample.cpu_seconds.total()},
               {"ghz_per_gbps", nullptr},
               {"context_switches", sample.processes.switches},
               {"migrations", or_null(sample.processes.migrations)},
               {"retransmits", or_null(sample.processes.retransmits)},
               {"processes_cpu_seconds", sample.cpu_seconds.processes},
               {"softirq_cpu_seconds", sample.cpu_seconds.softirq},
               {"interrupts_cpu_seconds", or_null(sample.cpu_seconds.interrupts)},
               {"interrupts", sample.kernel.interrupts},
               {"ipis", or_null(sample.kernel.ipis)}};
    if (sample.cycles_per_bit) value["ghz_per_gbps"] = sample.cycles_per_bit->total();
    if (!sample.exchanges) return value;
    value["exchanges"] = sample.exchanges->count;
    value["p50_seconds"] = sample.exchanges->p50_seconds;
    value["p99_seconds"] = sample.exchanges->p99_seconds;
    return value;
}

json model_json(const ModelSummary& summary, const ModelResult& result) {
    json samples = json::array();
    for (const auto& sample : result.samples)
        samples.push_back(sample_json(sample));
    json value{{"model", to_string(summary.model)},
               {"rounds", summary.rounds},
               {"bits_per_second", interval_json(summary.bits_per_second)},
               {"gain", comparison_json(summary.gain)},
               {"ghz_per_gbps", interval_json(summary.cost.cycles_per_bit.total)},
               {"cost", comparison_json(summary.cost.change)},
               {"busy_cpus", or_null(summary.busy_cpus)},
               {"instructions_per_bit", or_null(summary.per_bit.instructions)},
               {"cache_misses_per_bit", or_null(summary.per_bit.cache_misses.mean)},
               {"context_switches_per_second", or_null(summary.per_second.switches.mean)},
               {"migrations_per_second", or_null(summary.per_second.migrations.mean)},
               {"retransmits_per_second", or_null(summary.per_second.retransmits.mean)},
               {"cpus", measure::to_json(summary.cpus)},
               {"lines", measure::to_json(summary.lines)},
               {"samples", std::move(samples)}};
    value["ghz_per_gbps_parts"] = parts_json(summary.cost.cycles_per_bit);
    value[summary.exchanges ? "cpu_seconds_per_exchange" : "cpu_seconds_per_gbit"] =
        parts_json(summary.cost.cpu_seconds);
    value["per_second"] = per_second_json(summary.per_second);
    value["cache_misses"] = {{"per_bit", interval_json(summary.per_bit.cache_misses.interval)},
                             {"change", comparison_json(summary.per_bit.misses_change)}};
    value["exchanges"] = exchanges_json(summary.exchanges);
    return value;
}

json models_json(const PointResult& point) {
    json models = json::array();
    const auto summaries = summarize(point.models);
    for (std::size_t i = 0; i < summaries.size(); ++i)
        models.push_back(model_json(summaries[i], point.models[i]));
    return models;
}

json point_json(const PointResult& point) {
    const bool answers = point.point.work == Work::answer;
    return {{"direction", to_string(point.point.work)},
            {"bytes", point.point.bytes},
            {"response_bytes", answers ? json(point.point.response_bytes) : json()},
            {"models", models_json(point)}};
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

std::string to_json(const ModelsReport& report) {
    json value{{"version", 1},
               {"kind", "models"},
               {"outcome", to_string(report.outcome)},
               {"reason", report.reason},
               {"setup", report.setup},
               {"connections", report.connections},
               {"round_seconds", report.round_seconds},
               {"seconds", report.seconds},
               {"cycles_source", report.cycles_source},
               {"parts_note", report.parts_note},
               {"busy_before", or_null(report.busy_before)},
               {"cpus", report.cpus.to_list()},
               {"models", json::array()},
               {"points", json::array()}};
    const auto* shown = main_point(report);
    for (const auto& each : report.points) {
        auto point = point_json(each);
        if (&each == shown)
            for (const char* key : {"direction", "bytes", "response_bytes", "models"})
                value[key] = point[key];
        value["points"].push_back(std::move(point));
    }
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace affinityd::ttcp
