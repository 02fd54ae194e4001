// SPDX-License-Identifier: Apache-2.0
#include "experiments/latency/matrix.hpp"

#include "experiments/frame/supervision.hpp"
#include "measure/comparison.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::experiments {

namespace {

constexpr double usual_ns = 120, pair_seconds = 0.0025;

/// No value: there is no sample.
std::optional<PairFigures> figures_of(const CpuPair& pair, const std::vector<double>& samples) {
    std::vector<double> rates;
    for (const double ns : samples)
        rates.push_back(1 / ns);
    const auto mean = measure::harmonic_mean(rates);
    if (!mean) return std::nullopt;
    const double ns = 1 / *mean;
    PairFigures figures{pair, ns, {}, {}, *measure::median(samples)};
    if (const auto interval = measure::mean_interval(rates)) {
        figures.low = 1 / interval->high;
        figures.high = 1 / interval->low;
    }
    return figures;
}

} // namespace

Result<LatencyMatrix> measure_pairs(const CpuSet& cpus, topology::MeasuredMachine machine,
                                    const std::vector<CpuPair>& pairs, const PingPong& how, Run& run) {
    LatencyMatrix matrix{topology::Latencies(cpus, std::move(machine)), {}, how};
    std::size_t done = 0;
    for (const auto& pair : pairs) {
        run.advance(done++, pairs.size());
        const auto samples = bounce(pair, how, run);
        if (!samples) return std::unexpected(samples.error());
        if (run.is_stopped()) {
            matrix.is_whole = false;
            break;
        }
        matrix.interrupted += samples->interrupted;
        if (const auto figures = figures_of(pair, samples->ns)) {
            matrix.latencies.set(pair.a, pair.b, figures->ns);
            matrix.pairs.push_back(*figures);
        } else {
            matrix.disturbed.push_back(pair);
        }
    }
    std::ranges::sort(matrix.pairs, {}, &PairFigures::pair);
    return matrix;
}

double estimated_seconds(std::size_t pairs, const PingPong& how) {
    const double sample = 2 * usual_ns * 1e-9 * how.round_trips;
    return static_cast<double>(pairs) * (pair_seconds + sample * how.samples);
}

} // namespace affinityd::experiments
