// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/report.hpp"

#include "affinity-ttcp/models/summary.hpp"
#include "measure/report_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace affinityd::ttcp {

using measure::or_null;

namespace {

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
