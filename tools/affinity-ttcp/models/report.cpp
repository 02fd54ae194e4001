// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/report.hpp"

#include "affinity-ttcp/models/summary.hpp"
#include "measure/report_json.hpp"

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

json sample_json(const ModelSample& sample) {
    return {{"bits_per_second", sample.bits_per_second},
            {"bytes", sample.bytes},
            {"seconds", sample.wall_seconds},
            {"cpu_seconds", sample.cpu_seconds},
            {"ghz_per_gbps", or_null(sample.cycles_per_bit)},
            {"context_switches", sample.switches},
            {"migrations", or_null(sample.migrations)},
            {"retransmits", or_null(sample.retransmits)}};
}

json model_json(const ModelSummary& summary, const ModelResult& result) {
    json samples = json::array();
    for (const auto& sample : result.samples)
        samples.push_back(sample_json(sample));
    return {{"model", to_string(summary.model)},
            {"rounds", summary.rounds},
            {"bits_per_second", interval_json(summary.bits_per_second)},
            {"gain", comparison_json(summary.gain)},
            {"ghz_per_gbps", interval_json(summary.cycles_per_bit)},
            {"cost", comparison_json(summary.cost)},
            {"busy_cpus", summary.busy_cpus},
            {"instructions_per_bit", or_null(summary.instructions_per_bit)},
            {"cache_misses_per_bit", or_null(summary.cache_misses_per_bit)},
            {"context_switches_per_second", summary.per_second.switches},
            {"migrations_per_second", or_null(summary.per_second.migrations)},
            {"retransmits_per_second", or_null(summary.per_second.retransmits)},
            {"cpus", measure::to_json(summary.cpus)},
            {"lines", measure::to_json(summary.lines)},
            {"samples", std::move(samples)}};
}

} // namespace

std::string to_json(const ModelsReport& report) {
    json models = json::array();
    const auto summaries = summarize(report.results);
    for (std::size_t i = 0; i < summaries.size(); ++i)
        models.push_back(model_json(summaries[i], report.results[i]));
    const json value{{"version", 1},
                     {"kind", "models"},
                     {"outcome", to_string(report.outcome)},
                     {"reason", report.reason},
                     {"setup", report.setup},
                     {"connections", report.connections},
                     {"direction", report.direction},
                     {"round_seconds", report.round_seconds},
                     {"seconds", report.seconds},
                     {"cycles_source", report.cycles_source},
                     {"cpus", report.cpus.to_list()},
                     {"models", std::move(models)}};
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace affinityd::ttcp
