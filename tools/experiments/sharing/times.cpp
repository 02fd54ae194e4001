// SPDX-License-Identifier: Apache-2.0
#include "experiments/sharing/times.hpp"

#include "experiments/frame/supervision.hpp"

namespace affinityd::experiments {

namespace {

constexpr unsigned warm_runs = 1, counted_runs = 3; ///< of each placing
constexpr double usual_addition_seconds = 30e-9;    ///< with two threads that take a line from each other

/// Runs that nobody times, but that count misses.
Result<void> count_misses(PlacingTimes& placing, const SharingHow& how, const Run& run) {
    for (unsigned i = 0; i < counted_runs && !run.is_stopped(); ++i) {
        const auto counted = run_sharing(placing.placed, how.additions, true);
        if (!counted) return std::unexpected(counted.error());
        if (!counted->reads) continue;
        if (!placing.reads) placing.reads.emplace();
        *placing.reads += *counted->reads;
    }
    return {};
}

} // namespace

Result<SharingTimes> measure_sharing(const std::vector<PlacedThreads>& placings, const SharingHow& how,
                                     Run& run) {
    SharingTimes times{.how = how};
    for (const auto& placed : placings)
        times.placings.push_back({placed, {}, {}});
    if (const auto counter = MissCounter::open(); !counter) times.no_counters = counter.error();
    const std::size_t all = (how.rounds + warm_runs) * placings.size();
    std::size_t done = 0;
    for (unsigned round = 0; round < how.rounds + warm_runs; ++round)
        for (std::size_t i = 0; i < placings.size(); ++i) {
            run.advance(done++, all);
            auto& placing = times.placings[(round + i) % placings.size()];
            const auto ended = run_sharing(placing.placed, how.additions, false);
            if (!ended) return std::unexpected(ended.error());
            if (run.is_stopped()) {
                times.is_whole = false;
                return times;
            }
            if (round >= warm_runs) placing.seconds.push_back(ended->seconds);
        }
    for (auto& placing : times.placings)
        if (times.no_counters.empty())
            if (auto counted = count_misses(placing, how, run); !counted)
                return std::unexpected(counted.error());
    return times;
}

double estimated_seconds(std::size_t placings, const SharingHow& how) {
    const double run = 0.0005 + usual_addition_seconds * how.additions;
    return run * static_cast<double>(placings * (how.rounds + warm_runs + counted_runs));
}

} // namespace affinityd::experiments
