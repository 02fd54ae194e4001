// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/experiment_outcome.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/experiments/cache_view.hpp"
#include "experiments/cache/places.hpp"
#include "experiments/cache/polluter.hpp"
#include "experiments/cache/times.hpp"
#include "experiments/frame/refusal.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;

namespace {

struct MeasureCacheOptions {
    ExperimentOptions common;
    std::string cpus;
    std::vector<std::uint64_t> sizes_kib, caches_kib;
    experiments::CacheHow how;
};

int finish_cache(const Globals& globals, const MeasureCacheOptions& options,
                 const experiments::CacheSeats& seats, const experiments::CacheTimes& times,
                 const MeasuredOn& on, bool is_quiet) {
    const auto reading = experiments::read_cache(times, seats, is_quiet);
    const CacheView view{times, reading, seats};
    return finish_experiment(globals, options.common, on,
                             {.kind = "cache",
                              .summary = experiments::summary_of(reading),
                              .text = cache_text(view, on, Page::of_output(globals.color)),
                              .picture = cache_svg(view, on),
                              .document = cache_json(view, on)});
}

/// The working sets of the command line, else those that fit the machine's caches.
experiments::CacheHow how_to_measure(const MeasureCacheOptions& options,
                                     const experiments::CacheSeats& seats) {
    auto how = options.how;
    for (const auto kib : options.sizes_kib)
        how.footprints.push_back(kib << 10U);
    if (how.footprints.empty()) how.footprints = experiments::footprints_for(seats.sizes);
    std::ranges::sort(how.quanta_ms);
    std::ranges::sort(how.footprints);
    how.quanta_ms.erase(std::ranges::unique(how.quanta_ms).begin(), how.quanta_ms.end());
    how.footprints.erase(std::ranges::unique(how.footprints).begin(), how.footprints.end());
    return how;
}

/// The CPUs to measure on, and the caches: those of the command line, of the kernel, or of the C library.
std::expected<experiments::CacheSeats, experiments::Refusal>
seats_for(const MeasureCacheOptions& options, const Bench& bench, const affinityd::CpuSet& cpus) {
    experiments::CacheSizes named;
    if (const auto& kib = options.caches_kib; kib.size() == 3)
        named = {kib[0] << 10U, kib[1] << 10U, kib[2] << 10U};
    const bool is_named = named.first != 0;
    auto seats =
        experiments::cache_seats(bench.topology, cpus, is_named ? named : experiments::sizes_of_c_library());
    if (seats && is_named) seats->sizes = named;
    return seats;
}

/// What is not known from the kernel.
void add_remarks_on_caches(const MeasureCacheOptions& options, const experiments::CacheSeats& seats,
                           std::vector<std::string>& remarks) {
    if (!options.caches_kib.empty())
        remarks.emplace_back("the sizes of the caches are those of --caches");
    else if (!seats.are_sizes_recorded)
        remarks.push_back(experiments::remark_of_c_library(seats.sizes));
    if (!seats.are_sizes_recorded)
        remarks.emplace_back(
            "the kernel does not say which CPUs share a cache: which have the same last level is a "
            "guess by die, package and node");
}

/// An exit code if what was typed for the caches cannot be.
int check_caches(const std::vector<std::uint64_t>& kib) {
    constexpr std::uint64_t largest_first = 1024, largest_own = 262'144; // several times what there is
    if (!std::ranges::is_sorted(kib))
        return complain(CallError{
            exit_usage, "--caches names the L1 data cache, the core's own and the last level, which ascend"});
    if (!kib.empty() && (kib[0] > largest_first || kib[1] > largest_own))
        return complain(
            CallError{exit_usage, fmt::format("--caches: no core has {} and {} KiB of its own; getconf(1) "
                                              "says bytes, of which this wants the 1024th part",
                                              kib[0], kib[1])});
    return exit_ok;
}

int measure_cache(const Globals& globals, const MeasureCacheOptions& options) {
    if (const int code = check_experiment(globals, options.common); code != exit_ok) return code;
    if (const int code = check_caches(options.caches_kib); code != exit_ok) return code;
    const auto bench = read_bench();
    if (!bench) return complain(bench.error());
    const auto cpus = chosen_cpus(*bench, options.cpus);
    if (!cpus) return cpus.error();
    const auto seats = seats_for(options, *bench, *cpus);
    if (!seats) return refuse(refusal_of(seats.error(), *cpus));
    for (const auto& sentence : seats->refused)
        fmt::print(stderr, "affinityctl: {}\n", sentence);
    const auto polluter = experiments::polluter_for(seats->sizes, experiments::available_memory(bench->root));
    auto how = how_to_measure(options, *seats);
    how.polluter_bytes = polluter.bytes;
    const auto no_room = words_for_too_large(take_out_too_large(how.footprints, polluter), polluter);
    if (how.footprints.empty()) return refuse(no_room + ": name smaller ones with --sizes");
    affinityd::Result<experiments::CacheTimes> times = affinityd::fail("nothing was measured");
    affinityd::CpuSet used;
    for (const auto place : experiments::places)
        if (const auto cpu = seats->of(place)) used.insert(*cpu);
    const auto end = run_experiment(
        *bench,
        {.doing = "measuring what it costs to lose the cache",
         .seconds = experiments::estimated_seconds(*seats, how),
         .cpus = used},
        options.common, [&](experiments::Run& run) { times = experiments::measure_cache(*seats, how, run); });
    if (!end) return complain(end.error());
    if (!times) return complain(times.error());
    if (end->ending == experiments::Ending::stopped || !times->is_whole)
        return refuse("stopped before the last working set was measured; nothing is kept");
    auto on = measured_on(*bench, used, *end);
    add_remarks_on_caches(options, *seats, on.remarks);
    if (auto remark = remark_of(polluter); !remark.empty()) on.remarks.push_back(std::move(remark));
    if (!no_room.empty()) on.remarks.push_back(no_room);
    return finish_cache(globals, options, *seats, *times, on, end->remarks.empty());
}

} // namespace

void add_measure_cache(CLI::App& parent, Globals& globals, int& status) {
    auto* verb = parent.add_subcommand(
        "cache", "what it costs a task to lose its cache, and how wide its mask may be");
    const auto options = std::make_shared<MeasureCacheOptions>();
    verb->add_option("--cpus", options->cpus,
                     "a CPU-set expression as in policies; default: all this program may use")
        ->type_name("EXPR")
        ->check(not_empty());
    verb->add_option("--quanta", options->how.quanta_ms,
                     "how often it is interrupted, in ms, with commas between")
        ->delimiter(',')
        ->capture_default_str()
        ->check(in_range(0.1, 10000.0));
    verb->add_option(
            "--sizes", options->sizes_kib,
            "working sets in KiB, with commas between; default: from half the L1 to twice the last level")
        ->delimiter(',')
        ->check(CLI::Range(std::uint64_t{1}, experiments::most_footprint >> 10U));
    verb->add_option("--caches", options->caches_kib,
                     "the L1 data cache, the core's own and the last level in KiB, with commas between; "
                     "default: what the kernel says, else the C library")
        ->delimiter(',')
        ->expected(3)
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30U));
    verb->add_option("--rounds", options->how.rounds, "quanta of each case; below 4 there is no verdict")
        ->capture_default_str()
        ->check(CLI::Range(1U, 1000U));
    add_experiment_options(*verb, options->common);
    verb->callback([&globals, &status, options] { status = measure_cache(globals, *options); });
}

} // namespace affinityctl
