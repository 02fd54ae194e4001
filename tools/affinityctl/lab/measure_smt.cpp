// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/lab/experiment.hpp"
#include "affinityctl/present/document.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "experiments/smt.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <numeric>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
using affinityd::counted;
using experiments::Company;
using nlohmann::json;

namespace {

struct MeasureSmtOptions {
    ExperimentOptions common;
    experiments::SmtHow how;
};

std::string pair_cell(const json& row) {
    const unsigned first = row.at("cpus")[0], second = row.at("cpus")[1];
    return first == second ? std::to_string(first) : fmt::format("{} and {}", first, second);
}

std::string each_cell(const json& row) {
    if (row.at("second_ms").is_null()) return "-";
    return figure_words(row.at("first_ms")) + ", " + figure_words(row.at("second_ms"));
}

const Field company_fields[] = {
    {"load", "LOAD", "text", "accum (waits for its own results) or sin (keeps the core busy)"},
    {"company", "WHERE", "text", "alone, cores (two cores) or siblings (one core)", {}, name_cell},
    {"cpus", "CPUS", "count[]", "of the two threads", {}, pair_cell},
    {"ms", "MS", "interval?", "mean CPU time of a run, of both threads"},
    {"longer_than_alone", "THAN ALONE", "change?", "null: alone, or too few rounds"},
    {"first_ms", "EACH", "number", "mean of the first thread", {}, each_cell},
    {"second_ms", "", "number?", "mean of the second; null: it ran alone"},
};
const Field smt_verdict_fields[] = {
    {"load", "LOAD", "text", "accum or sin"},
    {"verdict", "VERDICT", "text", "smt: share, smt: avoid, no difference shown or not measured"},
    {"gain_together", "WORK DONE BY TWO ON ONE CORE", "change?", "than by one after the other"},
};
const Field smt_fields[] = {
    {"model", "", "text", "of the CPUs"},
    {"cpus", "", "cpus", "that the experiment might use"},
    {"numbers", "", "count", "floats that each thread works on"},
    {"companies", "", "object[]", "each load alone, on two cores, on one", company_fields},
    {"loads", "", "object[]", "the verdict on each load", smt_verdict_fields},
    {"no_siblings", "", "text?", "why one core is not measured"},
    {"no_cores", "", "text?", "why two cores are not measured"},
    {"taken_again", "", "count", "runs that another program had interrupted"},
    {"findings", "", "text[]", "sentences"},
    {"meaning", "", "text", "what to write into a policy"},
    {"remarks", "", "text[]", "on how far the figures can be trusted"},
    {"seconds", "", "number", "that it took"}};

json mean_ms(const std::vector<double>& seconds) {
    if (seconds.empty()) return {};
    return std::accumulate(seconds.begin(), seconds.end(), 0.0) * 1e3 / static_cast<double>(seconds.size());
}

/// Why companies are not measured.
std::vector<std::string> left_out(const experiments::SmtSeats& seats) {
    std::vector<std::string> sentences;
    if (!seats.siblings) sentences.push_back("one core is not measured: " + seats.no_siblings);
    if (!seats.cores) sentences.push_back("two cores are not measured: " + seats.no_cores);
    return sentences;
}

Document smt_document(const experiments::SmtResult& result, const experiments::SmtSeats& seats,
                      const MeasuredOn& on) {
    const auto rounds = result.cases.empty() ? 0 : result.cases.front().seconds.size();
    auto document = experiment_document(
        titled("Two threads on one core", on.model),
        fmt::format("{} numbers for each thread; {}; mean times with 95 % intervals; it took {:.1f} s",
                    affinityd::grouped(result.how.numbers), counted(rounds, "round"), on.seconds));
    Document::Table companies{.fields = company_fields, .folded = true, .keys = 2},
        verdicts{.fields = smt_verdict_fields, .folded = true};
    Document::Chart chart{
        .title = "CPU time of a run", .unit = "ms", .kind = Document::Chart::Kind::bars, .series = {}};
    for (const auto& one : result.cases) {
        companies.rows.push_back(record(company_fields, {name_of(one.load),
                                                         key_of(one.company),
                                                         {one.cpus.a, one.cpus.b},
                                                         interval_json(one.mean, ms),
                                                         change_json(one.longer),
                                                         mean_ms(one.first),
                                                         mean_ms(one.second)}));
        if (one.company == Company::alone) chart.series.push_back({std::string(name_of(one.load)), {}});
        chart.series.back().points.push_back(point_of(std::string(name_of(one.company)), one.mean, ms));
    }
    for (const auto& load : result.loads)
        verdicts.rows.push_back(
            record(smt_verdict_fields, {name_of(load.load), load.verdict, change_json(load.gain_together)}));
    document.value =
        record(smt_fields, {on.model, on.cpus, result.how.numbers, companies.rows, verdicts.rows,
                            or_null(seats.no_siblings), or_null(seats.no_cores), result.disturbed,
                            result.findings, result.meaning, on.remarks, on.seconds});
    for (std::size_t i = 0; i < result.cases.size(); ++i)
        companies.rows[i]["name"] = name_of(result.cases[i].company);
    document.add(std::move(companies)).gap = true;
    document.add(std::move(chart)).gap = true;
    document.add(std::move(verdicts)).gap = true;
    auto remarks = left_out(seats);
    remarks.insert(remarks.end(), on.remarks.begin(), on.remarks.end());
    add_conclusions(document, result.findings, remarks, result.meaning);
    return document;
}

Outcome measure_smt(const Globals& globals, const MeasureSmtOptions& options) {
    const auto bench = read_bench(globals, options.common);
    const auto seats = experiments::smt_seats(bench.topology, bench.chosen);
    if (!seats) return failed(exit_failure, refusal_of(seats.error(), bench.chosen));
    auto [result, on] = run_experiment_for<experiments::SmtResult>(
        bench,
        {.doing = "measuring two kinds of load",
         .seconds = experiments::estimated_seconds(*seats, options.how),
         .cpus = bench.chosen,
         .left_out = left_out(*seats)},
        options.common,
        [&](experiments::Run& run) { return experiments::measure_smt(*seats, options.how, run); });
    experiments::read_smt(result, *seats);
    if (result.disturbed > 0)
        on.remarks.push_back(counted(result.disturbed, "run") +
                             " taken again, because another program had been run in between");
    return finish_experiment(options.common, smt_document(result, *seats, on),
                             {.kind = "smt",
                              .summary = result.summary,
                              .subject = "CPUs " + on.cpus,
                              .seconds = on.seconds,
                              .detail = {}});
}

} // namespace

void add_measure_smt(CLI::App& parent, Globals& globals, int& status) {
    const auto options = std::make_shared<MeasureSmtOptions>();
    auto* verb = add_verb(parent,
                          {.name = "smt",
                           .summary = "two threads on one core against two cores, by kind of load",
                           .example = "affinityctl measure smt --svg smt.svg",
                           .answer = smt_fields,
                           .manual = "affinityctl-measure(1)"},
                          globals, status, [&globals, options] { return measure_smt(globals, *options); });
    verb->add_option("--rounds", options->how.rounds, "runs of each case; below 4 there is no verdict")
        ->capture_default_str()
        ->check(in_range(1U, 10000U));
    verb->add_option("--numbers", options->how.numbers,
                     "floats that each thread works on; the document has 100,000,000")
        ->capture_default_str()
        ->check(in_range(std::size_t{1000}, std::size_t{200'000'000}));
    add_experiment_options(*verb, options->common);
}

} // namespace affinityctl
