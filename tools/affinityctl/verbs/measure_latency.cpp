// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/present/output.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/experiment.hpp"
#include "affinityctl/verbs/latency_option.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/experiments/latency_view.hpp"
#include "affinityctl/views/json_text.hpp"
#include "base/text.hpp"
#include "experiments/latency/pairs.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
namespace topology = affinityd::topology;
using affinityd::CpuSet;
using affinityd::Result;
using experiments::PairChoice;

namespace {

const std::map<std::string, PairChoice> pair_choices{{"auto", PairChoice::automatic},
                                                     {"core", PairChoice::core},
                                                     {"llc", PairChoice::llc},
                                                     {"all", PairChoice::all}};

struct MeasureLatencyOptions {
    ExperimentOptions common;
    std::string cpus;
    std::string pairs = "auto";
    std::string means = "cas";
    std::string from; ///< "": this machine is measured
    experiments::PingPong how;
};

int show_latencies(const LatencyView& view, const MeasureLatencyOptions& options, const Globals& globals) {
    if (globals.json)
        fmt::print("{}\n", dump(latency_json(view)));
    else if (options.common.svg != "-")
        fmt::print("{}", latency_text(view, Page::of_output(globals.color)));
    return options.common.svg.empty() ? exit_ok : write_picture(options.common.svg, latency_svg(view));
}

int show_table(const Globals& globals, const MeasureLatencyOptions& options) {
    const auto latencies = read_latency_table(options.from);
    if (!latencies) return complain(latencies.error());
    std::optional<topology::Topology> machine; // of a recorded machine that the table is of
    if (globals.is_recorded()) {
        const auto root = affinityd::host::Root::open(globals.root);
        if (!root) return complain(root.error());
        auto read = topology::read_topology(*root);
        if (!read) return complain(read.error());
        machine = std::move(*read);
    }
    const auto* known = machine ? &*machine : nullptr;
    const auto reading = experiments::read_latencies(*latencies, known);
    return show_latencies(
        {.latencies = *latencies,
         .reading = reading,
         .topology = known,
         .source = options.from == "-" ? "standard input" : options.from.substr(options.from.rfind('/') + 1)},
        options, globals);
}

/// Keeps and shows what was measured.
int finish_latencies(const Bench& bench, const experiments::LatencyMatrix& matrix, const ExperimentEnd& end,
                     const MeasureLatencyOptions& options, const Globals& globals) {
    const auto reading = experiments::read_latencies(matrix.latencies, &bench.topology);
    LatencyView view{.latencies = matrix.latencies,
                     .reading = reading,
                     .matrix = &matrix,
                     .topology = &bench.topology,
                     .source = matrix.latencies.machine().model,
                     .seconds = end.seconds,
                     .remarks = end.remarks};
    if (matrix.interrupted > 0)
        view.remarks.push_back(affinityd::counted(matrix.interrupted, "sample") +
                               " taken again, because another program had been run in between.");
    if (!matrix.disturbed.empty())
        view.remarks.push_back(affinityd::counted(matrix.disturbed.size(), "pair") +
                               " could not be measured: other programs ran there all the time.");
    CpuSet cpus;
    for (const unsigned cpu : matrix.latencies.cpus())
        cpus.insert(cpu);
    if (!options.common.no_history && cpus.count() < bench.usable.count())
        view.remarks.push_back(fmt::format(
            "Policies that say 'measured' go by the result that was kept last. This one has {} of {} "
            "CPUs: measure all of them again, or keep such a one out with --no-history.",
            cpus.count(), bench.usable.count()));
    // First: who reads may go away in between.
    keep_result(options.common,
                {.kind = "latency",
                 .summary = experiments::summary_of(reading),
                 .subject = "CPUs " + cpus.to_list(),
                 .seconds = end.seconds,
                 .detail = latency_detail(view, affinityd::accounting::most_experiment_detail)});
    return show_latencies(view, options, globals);
}

/// The CPUs that the pairs are made of.
CpuSet pair_members(const std::vector<experiments::CpuPair>& pairs) {
    CpuSet members;
    for (const auto& pair : pairs) {
        members.insert(pair.a);
        members.insert(pair.b);
    }
    return members;
}

int measure_latencies(const Globals& globals, MeasureLatencyOptions options) {
    options.how.means = options.means == "cas" ? experiments::Means::cas : experiments::Means::store;
    const auto bench = read_bench();
    if (!bench) return complain(bench.error());
    const auto chosen = chosen_cpus(*bench, options.cpus);
    if (!chosen) return chosen.error();
    const auto pairs = experiments::choose_pairs(bench->topology, *chosen, pair_choices.at(options.pairs));
    if (!pairs) return refuse(refusal_of(pairs.error(), *chosen));
    const auto cpus = pair_members(*pairs);
    if (cpus.count() > topology::Latencies::most_cpus)
        return refuse(fmt::format("a table holds {} CPUs, and these are {}: choose some with --cpus",
                                  affinityd::grouped(topology::Latencies::most_cpus),
                                  affinityd::grouped(cpus.count())));
    Result<experiments::LatencyMatrix> matrix = affinityd::fail("nothing was measured");
    const auto end = run_experiment(
        *bench,
        {.doing = "measuring latency between " + affinityd::counted(pairs->size(), "pair") + " of CPUs",
         .seconds = experiments::estimated_seconds(pairs->size(), options.how),
         .cpus = cpus},
        options.common, [&](experiments::Run& run) {
            matrix = experiments::measure_pairs(
                cpus, describe(bench->topology, cpus, topology::read_cpu_model(bench->root)), *pairs,
                options.how, run);
        });
    if (!end) return complain(end.error());
    if (!matrix) return complain(matrix.error());
    if (end->ending == experiments::Ending::stopped || !matrix->is_whole)
        return refuse(fmt::format("stopped after {} of {} pairs; nothing is kept",
                                  affinityd::grouped(matrix->pairs.size()),
                                  affinityd::grouped(pairs->size())));
    if (matrix->pairs.empty())
        return refuse(
            "other programs ran on these CPUs all the time, and nothing could be measured: try it with "
            "--priority, or when the machine is quiet");
    return finish_latencies(*bench, *matrix, *end, options, globals);
}

int run_latency(const Globals& globals, const MeasureLatencyOptions& options) {
    const auto picture = check_picture(globals, options.common.svg);
    if (!picture) return complain(picture.error());
    if (!options.from.empty()) return show_table(globals, options);
    int status = exit_ok;
    return refuses_root(globals, status) ? status : measure_latencies(globals, options);
}

/// How it is measured: of no table that was.
void add_way_options(CLI::App& verb, MeasureLatencyOptions& options, CLI::Option* from) {
    verb.add_option("--means", options.means,
                    "how the line is passed on: compare-and-swap, or load and store")
        ->capture_default_str()
        ->check(CLI::IsMember({"cas", "store"}))
        ->excludes(from);
    verb.add_option("--samples", options.how.samples, "samples of each pair; below 4 there is no interval")
        ->capture_default_str()
        ->check(CLI::Range(1U, 10000U))
        ->excludes(from);
    verb.add_option("--round-trips", options.how.round_trips, "round trips in a sample")
        ->capture_default_str()
        ->check(CLI::Range(10U, 1000000U))
        ->excludes(from);
}

} // namespace

void add_measure_latency(CLI::App& parent, Globals& globals, int& status) {
    auto* verb = parent.add_subcommand(
        "latency", "how long a message takes between each two CPUs, and which are near each other");
    const auto options = std::make_shared<MeasureLatencyOptions>();
    auto* cpus = verb->add_option("--cpus", options->cpus,
                                  "a CPU-set expression as in policies; default: all this program may use")
                     ->type_name("EXPR")
                     ->check(not_empty());
    auto* pairs =
        verb->add_option("--pairs", options->pairs,
                         "all; one CPU of each core, or of each LLC group; auto: all up to 64 CPUs, else "
                         "some of each two groups")
            ->capture_default_str()
            ->check(CLI::IsMember({"auto", "core", "llc", "all"}));
    auto* from =
        verb->add_option(
                "--from", options->from,
                "show this table (CSV as of core-to-core-latency, or what --json printed; - is standard "
                "input) and measure nothing; with --root DIR it is of that recorded machine")
            ->type_name("FILE")
            ->check(not_empty())
            ->excludes(cpus)
            ->excludes(pairs);
    add_way_options(*verb, *options, from);
    add_experiment_options(*verb, options->common);
    for (const char* of_a_run : {"--priority", "--no-history"})
        from->excludes(verb->get_option(of_a_run));
    verb->callback([&globals, &status, options] { status = run_latency(globals, *options); });
}

} // namespace affinityctl
