// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/experiment_outcome.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/experiments/sharing_view.hpp"
#include "experiments/frame/refusal.hpp"
#include "experiments/sharing/times.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;

namespace {

struct MeasureSharingOptions {
    ExperimentOptions common;
    std::string cpus;
    experiments::SharingHow how;
};

int finish_sharing(const Globals& globals, const MeasureSharingOptions& options, const MeasuredOn& on,
                   const experiments::SharingTimes& times) {
    const auto reading = experiments::read_sharing(times);
    return finish_experiment(globals, options.common, on,
                             {.kind = "sharing",
                              .summary = experiments::summary_of(reading),
                              .text = sharing_text(times, reading, on, Page::of_output(globals.color)),
                              .picture = sharing_svg(times, reading, on),
                              .document = sharing_json(times, reading, on)});
}

int measure_sharing(const Globals& globals, const MeasureSharingOptions& options) {
    if (const int code = check_experiment(globals, options.common); code != exit_ok) return code;
    const auto bench = read_bench();
    if (!bench) return complain(bench.error());
    const auto cpus = chosen_cpus(*bench, options.cpus);
    if (!cpus) return cpus.error();
    const auto placings = experiments::placed_threads(bench->topology, *cpus);
    if (!placings) return refuse(refusal_of(placings.error(), *cpus));
    affinityd::Result<experiments::SharingTimes> times = affinityd::fail("nothing was measured");
    const auto end =
        run_experiment(*bench,
                       {.doing = fmt::format("measuring {} placings of four threads", placings->size()),
                        .seconds = experiments::estimated_seconds(placings->size(), options.how),
                        .cpus = *cpus},
                       options.common, [&](experiments::Run& run) {
                           times = experiments::measure_sharing(*placings, options.how, run);
                       });
    if (!end) return complain(end.error());
    if (!times) return complain(times.error());
    if (end->ending == experiments::Ending::stopped || !times->is_whole)
        return refuse(
            fmt::format("stopped in round {} of {}; nothing is kept", times->rounds(), options.how.rounds));
    return finish_sharing(globals, options, measured_on(*bench, *cpus, *end), *times);
}

} // namespace

void add_measure_sharing(CLI::App& parent, Globals& globals, int& status) {
    auto* verb = parent.add_subcommand(
        "sharing", "threads that write to the same cache lines: left to the scheduler, pinned, pinned badly");
    const auto options = std::make_shared<MeasureSharingOptions>();
    verb->add_option("--cpus", options->cpus,
                     "a CPU-set expression as in policies; default: all this program may use")
        ->type_name("EXPR")
        ->check(not_empty());
    verb->add_option("--rounds", options->how.rounds, "runs of each placing; below 4 there is no verdict")
        ->capture_default_str()
        ->check(CLI::Range(1U, 10000U));
    verb->add_option("--additions", options->how.additions, "how often each thread adds in a run")
        ->capture_default_str()
        ->check(CLI::Range(1000U, 100000000U));
    add_experiment_options(*verb, options->common);
    verb->callback([&globals, &status, options] { status = measure_sharing(globals, *options); });
}

} // namespace affinityctl
