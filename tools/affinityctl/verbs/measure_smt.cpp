// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/present/document.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/experiment.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "experiments/smt.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
using affinityd::counted;
using affinityd::Result;
using experiments::Company;
using nlohmann::json;

namespace {

constexpr double launch_seconds = 0.5;

struct MeasureSmtOptions {
    ExperimentOptions common;
    experiments::SmtHow how;
};

/// Both parts of the experiment.
struct SmtParts {
    std::vector<experiments::LaunchedThread> launched;
    experiments::SmtResult result;
    bool is_whole = true;
};

std::string numbers_of(const json& list) {
    return fmt::format("{}", fmt::join(list.get<std::vector<unsigned>>(), " "));
}

const Field company_fields[] = {
    {"load", "LOAD", "text", "accum (waits for its own results) or sin (keeps the core busy)"},
    {"company",
     "WHERE",
     "text",
     "alone, cores (two cores) or siblings (one core)",
     {},
     [](const json& row) { return cell(row.at("name")); }},
    {"cpus",
     "CPUS",
     "count[]",
     "of the two threads",
     {},
     [](const json& row) {
         const unsigned first = row.at("cpus")[0], second = row.at("cpus")[1];
         return first == second ? std::to_string(first) : fmt::format("{} and {}", first, second);
     }},
    {"ms", "MS", "object?", "mean CPU time of a run, of both threads", interval_fields,
     [](const json& row) { return ms_words(row.at("ms")); }},
    {"longer_than_alone", "THAN ALONE", "object?", "null: alone, or too few rounds", change_fields,
     [](const json& row) { return change_words(row.at("longer_than_alone")); }},
    {"first_ms",
     "EACH",
     "number",
     "mean of the first thread",
     {},
     [](const json& row) {
         if (row.at("second_ms").is_null()) return std::string("-");
         return fmt::format("{:.2f}, {:.2f}", row.at("first_ms").get<double>(),
                            row.at("second_ms").get<double>());
     }},
    {"second_ms", "", "number?", "mean of the second; null: it ran alone"},
};
const Field smt_verdict_fields[] = {
    {"load", "LOAD", "text", "accum or sin"},
    {"verdict", "VERDICT", "text", "smt: share, smt: avoid, no difference shown or not measured"},
    {"gain_together",
     "TWO ON ONE CORE AGAINST ONE AFTER THE OTHER",
     "number?",
     "how much more two of one core get done, relative",
     {},
     [](const json& row) {
         const auto& gain = row.at("gain_together");
         return gain.is_null() ? "-" : affinityd::measure::signed_percent(gain, 0) + " % work done";
     }},
};
const Field launched_fields[] = {
    {"", "THREAD", "text", "", {}, [](const json& row) { return cell(row.at("name")); }},
    {"free",
     "CPUS WHILE FREE",
     "count[]",
     "where the scheduler had it, look by look",
     {},
     [](const json& row) { return numbers_of(row.at("free")); }},
    {"pinned_to", "PINNED TO", "count", "its own CPU afterwards"},
    {"pinned",
     "CPUS THEN",
     "count[]",
     "where it was after that",
     {},
     [](const json& row) { return numbers_of(row.at("pinned")); }},
};
const Field smt_fields[] = {
    {"model", "", "text", "of the CPUs"},
    {"cpus", "", "cpus", "that the experiment might use"},
    {"numbers", "", "count", "floats that each thread works on"},
    {"launched", "", "object[]", "threads before and after they are pinned", launched_fields},
    {"companies", "", "object[]", "each load alone, on two cores, on one", company_fields},
    {"loads", "", "object[]", "the verdict on each load", smt_verdict_fields},
    {"no_siblings", "", "text?", "why one core is not measured"},
    {"no_cores", "", "text?", "why two cores are not measured"},
    {"taken_again", "", "count", "runs that another program had interrupted"},
    {"findings", "", "text[]", "sentences"},
    {"meaning", "", "text", "what to write into a policy"},
    {"remarks", "", "text[]", "on how far the figures can be trusted"},
    {"seconds", "", "number", "that it took"}};

Document smt_document(const SmtParts& parts, const experiments::SmtSeats& seats, const MeasuredOn& on) {
    const auto& result = parts.result;
    const auto rounds = result.cases.empty() ? 0 : result.cases.front().seconds.size();
    auto document = experiment_document(
        titled("Two threads on one core", on.model),
        fmt::format("{} numbers for each thread; {}; mean times with 95 % intervals; it took {:.1f} s",
                    affinityd::grouped(result.how.numbers), counted(rounds, "round"), on.seconds));
    Document::Table companies{.fields = company_fields, .folded = true, .keys = 2},
        verdicts{.fields = smt_verdict_fields, .folded = true},
        launched{.fields = launched_fields, .folded = true};
    Document::Chart chart{
        .title = "CPU time of a run", .unit = "ms", .kind = Document::Chart::Kind::bars, .series = {}};
    for (const auto& one : result.cases) {
        const auto mean = [](const std::vector<double>& seconds) {
            double sum = 0;
            for (const double each : seconds)
                sum += each;
            return seconds.empty() ? json() : json(sum * 1e3 / static_cast<double>(seconds.size()));
        };
        companies.rows.push_back(record(company_fields, {name_of(one.load),
                                                         key_of(one.company),
                                                         {one.cpus.a, one.cpus.b},
                                                         ms_json(one.mean),
                                                         change_json(one.longer),
                                                         mean(one.first),
                                                         mean(one.second)}));
        if (one.company == Company::alone) chart.series.push_back({std::string(name_of(one.load)), {}});
        chart.series.back().points.push_back(ms_bar(std::string(name_of(one.company)), one.mean));
    }
    for (const auto& load : result.loads)
        verdicts.rows.push_back(
            record(smt_verdict_fields, {name_of(load.load), load.verdict, or_null(load.gain_together)}));
    for (const auto& thread : parts.launched)
        launched.rows.push_back(record(launched_fields, {thread.before, thread.pinned_to, thread.after}));
    document.value =
        record(smt_fields, {on.model, on.cpus, result.how.numbers, launched.rows, companies.rows,
                            verdicts.rows, or_null(seats.no_siblings), or_null(seats.no_cores),
                            result.disturbed, result.findings, result.meaning, on.remarks, on.seconds});
    for (std::size_t i = 0; i < result.cases.size(); ++i)
        companies.rows[i]["name"] = name_of(result.cases[i].company);
    for (std::size_t i = 0; i < parts.launched.size(); ++i)
        launched.rows[i]["name"] = fmt::format("#{}", i);
    document.add(std::move(companies)).gap = true;
    document.add(std::move(chart)).gap = true;
    document.add(std::move(verdicts)).gap = true;
    std::vector<std::string> refused;
    if (!seats.siblings) refused.push_back("one core is not measured: " + seats.no_siblings);
    if (!seats.cores) refused.push_back("two cores are not measured: " + seats.no_cores);
    refused.insert(refused.end(), on.remarks.begin(), on.remarks.end());
    add_conclusions(document, result.findings, refused, result.meaning);
    document.add(std::move(launched), Document::Where::text).gap = true;
    document.add(Document::Line{{{"Threads go where there is room, until they are pinned. affinityctl watch "
                                  "shows the same of threads under policy, as "
                                  "they run."}}},
                 Document::Where::text);
    return document;
}

Outcome measure_smt(const Globals& globals, const MeasureSmtOptions& options) {
    const auto bench = read_bench(globals, options.common);
    if (!bench) return std::unexpected(bench.error());
    const auto seats = experiments::smt_seats(bench->topology, bench->chosen);
    if (!seats) return failed(exit_failure, refusal_of(seats.error(), bench->chosen));
    for (const auto& sentence : {seats->no_siblings, seats->no_cores})
        if (!sentence.empty()) fmt::print(stderr, "affinityctl: {}\n", sentence);
    auto measured = run_experiment_for<SmtParts>(
        *bench,
        {.doing = "measuring two kinds of load on one and two cores",
         .seconds = experiments::estimated_seconds(*seats, options.how) + launch_seconds,
         .cpus = bench->chosen},
        options.common, [&](experiments::Run& run) -> Result<SmtParts> {
            auto launched = experiments::launch_threads(bench->chosen, run);
            if (!launched) return std::unexpected(launched.error());
            auto result = experiments::measure_smt(*seats, options.how, run);
            if (!result) return std::unexpected(result.error());
            const bool is_whole = result->is_whole;
            return SmtParts{std::move(*launched), std::move(*result), is_whole};
        });
    if (!measured) return std::unexpected(measured.error());
    auto& [parts, on] = *measured;
    experiments::read_smt(parts.result, *seats);
    if (parts.result.disturbed > 0)
        on.remarks.push_back(fmt::format(
            "{} runs taken again, because another program had been run in between", parts.result.disturbed));
    return finish_experiment(options.common, smt_document(parts, *seats, on),
                             {.kind = "smt",
                              .summary = parts.result.summary,
                              .subject = "CPUs " + on.cpus,
                              .seconds = on.seconds,
                              .detail = {}});
}

} // namespace

void add_measure_smt(CLI::App& parent, Globals& globals, int& status) {
    const auto options = std::make_shared<MeasureSmtOptions>();
    auto* verb = add_verb(
        parent,
        {.name = "smt",
         .summary = "two threads on one core against two cores, by kind of load, and where threads run",
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
