// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/lab/experiment.hpp"
#include "affinityctl/present/document.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "experiments/sharing.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
using affinityd::counted;
using nlohmann::json;

namespace {

struct MeasureSharingOptions {
    ExperimentOptions common;
    experiments::SharingHow how;
};

/// "a: 0 0  b: 1 1"; of the scheduler's own placing the CPUs that it had.
std::string sharing_cpus(const json& row) {
    const auto& cpus = row.at("threads");
    if (row.at("placing") == "scheduler") return cpus[0];
    return fmt::format("a: {} {}  b: {} {}", cpus[0].get<std::string>(), cpus[2].get<std::string>(),
                       cpus[1].get<std::string>(), cpus[3].get<std::string>());
}

std::string misses_cell(const json& row) {
    const auto& rate = row.at("l1d_miss_rate");
    return rate.is_null() ? "-" : affinityd::measure::percent(rate, 2) + " %";
}

const Field placing_fields[] = {
    {"placing", "PLACING", "text", "scheduler, pairs, neighbours, apart or false_sharing", {}, name_cell},
    {"ms", "MS PER RUN", "interval?", "mean time of a run"},
    {"median_ms", "", "number", "median of it"},
    {"longer_than_scheduler", "THAN THE SCHEDULER", "change?",
     "null: the scheduler's own, or too few rounds"},
    {"l1d_miss_rate",
     "L1D MISSES",
     "number?",
     "part of the reads of the first-level cache that missed it",
     {},
     misses_cell},
    {"threads",
     "CPUS",
     "cpus[]",
     "of each of the four threads; the first and third write to one variable",
     {},
     sharing_cpus},
};
const Field sharing_fields[] = {
    {"model", "", "text", "of the CPUs"},
    {"cpus", "", "cpus", "that the experiment might use"},
    {"rounds", "", "count", "runs of each placing"},
    {"additions", "", "count", "of each thread in a run"},
    {"placings", "", "object[]", "the first is the scheduler's own", placing_fields},
    {"no_counters", "", "text?", "why misses are not counted"},
    {"findings", "", "text[]", "sentences"},
    {"meaning", "", "text", "what to write into a policy"},
    {"remarks", "", "text[]", "on how far the figures can be trusted"},
    {"seconds", "", "number", "that it took"}};

Document sharing_document(const experiments::SharingResult& result, const MeasuredOn& on) {
    const auto rounds = result.cases.front().seconds.size();
    auto document = experiment_document(
        titled("Threads that write to the same cache lines", on.model),
        fmt::format("4 threads, two on each of two variables, {} additions each; {} of each placing; mean "
                    "times with 95 % intervals; it took {:.1f} s",
                    affinityd::grouped(result.how.additions), counted(rounds, "round"), on.seconds));
    Document::Table table{.fields = placing_fields, .folded = true};
    Document::Chart chart{
        .title = "Time of a run", .unit = "ms", .kind = Document::Chart::Kind::bars, .series = {{}}};
    json placings = json::array();
    for (const auto& one : result.cases) {
        json threads = json::array();
        for (const auto& set : one.placed.cpus)
            threads.push_back(set.to_list());
        const double median = affinityd::measure::median(one.seconds).value_or(0) * 1e3;
        placings.push_back(
            record(placing_fields, {key_of(one.placed.placing), interval_json(one.mean, ms), median,
                                    change_json(one.longer), or_null(one.miss_rate()), std::move(threads)}));
        table.rows.push_back(placings.back());
        table.rows.back()["name"] = name_of(one.placed.placing);
        chart.series[0].points.push_back(point_of(std::string(name_of(one.placed.placing)), one.mean, ms));
    }
    document.add(std::move(table)).gap = true;
    document.add(std::move(chart)).gap = true;
    auto remarks = on.remarks;
    if (!result.no_counters.empty()) remarks.insert(remarks.begin(), "L1d misses: " + result.no_counters);
    add_conclusions(document, result.findings, remarks, result.meaning);
    document.value = record(sharing_fields, {on.model, on.cpus, rounds, result.how.additions,
                                             std::move(placings), or_null(result.no_counters),
                                             result.findings, result.meaning, on.remarks, on.seconds});
    return document;
}

Outcome measure_sharing(const Globals& globals, const MeasureSharingOptions& options) {
    const auto bench = read_bench(globals, options.common);
    const auto placings = experiments::placed_threads(bench.topology, bench.chosen);
    if (!placings) return failed(exit_failure, refusal_of(placings.error(), bench.chosen));
    auto [result, on] = run_experiment_for<experiments::SharingResult>(
        bench,
        {.doing = fmt::format("measuring {} placings of four threads", placings->size()),
         .seconds = experiments::estimated_seconds(placings->size(), options.how),
         .cpus = bench.chosen},
        options.common,
        [&](experiments::Run& run) { return experiments::measure_sharing(*placings, options.how, run); });
    experiments::read_sharing(result);
    return finish_experiment(options.common, sharing_document(result, on),
                             {.kind = "sharing",
                              .summary = result.summary,
                              .subject = "CPUs " + on.cpus,
                              .seconds = on.seconds,
                              .detail = {}});
}

} // namespace

void add_measure_sharing(CLI::App& parent, Globals& globals, int& status) {
    const auto options = std::make_shared<MeasureSharingOptions>();
    auto* verb = add_verb(
        parent,
        {.name = "sharing",
         .summary = "threads that write to the same cache lines: left to the scheduler, pinned, pinned badly",
         .example = "affinityctl measure sharing --cpus llc:0",
         .answer = sharing_fields,
         .manual = "affinityctl-measure(1)"},
        globals, status, [&globals, options] { return measure_sharing(globals, *options); });
    verb->add_option("--rounds", options->how.rounds, "runs of each placing; below 4 there is no verdict")
        ->capture_default_str()
        ->check(in_range(1U, 10000U));
    verb->add_option("--additions", options->how.additions, "how often each thread adds in a run")
        ->capture_default_str()
        ->check(in_range(1000U, 100000000U));
    add_experiment_options(*verb, options->common);
}

} // namespace affinityctl
