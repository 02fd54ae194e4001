// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/experiment_outcome.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/experiments/smt_view.hpp"
#include "experiments/frame/refusal.hpp"
#include "experiments/smt/launch.hpp"
#include "experiments/smt/times.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
using affinityd::Result;

namespace {

constexpr double launch_seconds = 0.5;

struct MeasureSmtOptions {
    ExperimentOptions common;
    std::string cpus;
    experiments::SmtHow how;
};

/// Both parts of the experiment.
struct SmtParts {
    Result<std::vector<experiments::LaunchedThread>> launched = affinityd::fail("nothing was launched");
    Result<experiments::SmtTimes> times = affinityd::fail("nothing was measured");
};

int finish_smt(const Globals& globals, const MeasureSmtOptions& options, const Bench& bench,
               const experiments::SmtSeats& seats, const SmtParts& parts, const MeasuredOn& on) {
    const auto reading = experiments::read_smt(*parts.times, seats);
    const auto rows = experiments::topology_rows(bench.topology);
    const SmtView view{*parts.times, reading, seats, *parts.launched, rows};
    return finish_experiment(globals, options.common, on,
                             {.kind = "smt",
                              .summary = experiments::summary_of(reading),
                              .text = smt_text(view, on, Page::of_output(globals.color)),
                              .picture = smt_svg(view, on),
                              .document = smt_json(view, on)});
}

int measure_smt(const Globals& globals, const MeasureSmtOptions& options) {
    if (const int code = check_experiment(globals, options.common); code != exit_ok) return code;
    const auto bench = read_bench();
    if (!bench) return complain(bench.error());
    const auto cpus = chosen_cpus(*bench, options.cpus);
    if (!cpus) return cpus.error();
    const auto seats = experiments::smt_seats(bench->topology, *cpus);
    if (!seats) return refuse(refusal_of(seats.error(), *cpus));
    for (const auto& sentence : {seats->no_siblings, seats->no_cores})
        if (!sentence.empty()) fmt::print(stderr, "affinityctl: {}\n", sentence);
    SmtParts parts;
    const auto end =
        run_experiment(*bench,
                       {.doing = "measuring two kinds of load on one and two cores",
                        .seconds = experiments::estimated_seconds(*seats, options.how) + launch_seconds,
                        .cpus = *cpus},
                       options.common, [&](experiments::Run& run) {
                           parts.launched = experiments::launch_threads(*cpus, run);
                           if (parts.launched)
                               parts.times = experiments::measure_smt(*seats, options.how, run);
                       });
    if (!end) return complain(end.error());
    if (!parts.launched) return complain(parts.launched.error());
    if (!parts.times) return complain(parts.times.error());
    if (end->ending == experiments::Ending::stopped || !parts.times->is_whole)
        return refuse("stopped before the last round; nothing is kept");
    auto on = measured_on(*bench, *cpus, *end);
    if (parts.times->interrupted > 0)
        on.remarks.push_back(
            fmt::format("{} runs taken again, because another program had been run in between",
                        parts.times->interrupted));
    return finish_smt(globals, options, *bench, *seats, parts, on);
}

} // namespace

void add_measure_smt(CLI::App& parent, Globals& globals, int& status) {
    auto* verb = parent.add_subcommand(
        "smt", "two threads on one core against two cores, by kind of load, and where threads run");
    const auto options = std::make_shared<MeasureSmtOptions>();
    verb->add_option("--cpus", options->cpus,
                     "a CPU-set expression as in policies; default: all this program may use")
        ->type_name("EXPR")
        ->check(not_empty());
    verb->add_option("--rounds", options->how.rounds, "runs of each case; below 4 there is no verdict")
        ->capture_default_str()
        ->check(CLI::Range(1U, 10000U));
    verb->add_option("--numbers", options->how.numbers,
                     "floats that each thread works on; the document has 100,000,000")
        ->capture_default_str()
        ->check(CLI::Range(std::size_t{1000}, std::size_t{200'000'000}));
    add_experiment_options(*verb, options->common);
    verb->callback([&globals, &status, options] { status = measure_smt(globals, *options); });
}

} // namespace affinityctl
