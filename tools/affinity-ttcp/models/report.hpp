// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/sample.hpp"
#include "measure/statistics.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::ttcp {

/// A whole experiment.
struct ModelsReport {
    measure::Outcome outcome = measure::Outcome::failed;
    std::string reason;
    bool is_whole = true; ///< all rounds were made
    std::string setup;    ///< for a person: the testbed and its limits (veth pairs are no NICs)
    unsigned connections = 0;
    double round_seconds = 0;
    double seconds = 0;                    ///< the whole experiment
    std::string cycles_source, parts_note; ///< as sample.hpp has them
    CpuSet cpus;
    std::vector<PointResult> points; ///< in the order of the command line
};

/// The point that stands for a report: of what it does first, the largest size.
[[nodiscard]] const PointResult* main_point(const ModelsReport& report);

/// False: it ended before the first round was measured, and has no figures.
[[nodiscard]] bool has_rounds(const ModelsReport& report);

/// The figures of a model at a point.
enum class Figure {
    bits_per_second,
    exchanges_per_second, ///< with Work::answer, as the next two
    p50,                  ///< seconds
    p99,
    cycles, ///< for each bit (GHz/Gbps), then its parts, which add up to it
    cycles_processes,
    cycles_softirq,
    cycles_interrupts,
    cpu, ///< CPU seconds of a gigabit, with Work::answer of an exchange, then its parts
    cpu_processes,
    cpu_softirq,
    cpu_interrupts,
    busy_cpus,    ///< CPU time of the system under test over wall time
    instructions, ///< for each bit, as the next
    cache_misses,
    switches, ///< a second, of the processes under test, as the next two
    migrations,
    retransmits,
    interrupts, ///< a second, of the machine, as KernelCounts
    ipis,
    net_rx,
    net_tx,
};
inline constexpr std::size_t figure_count = static_cast<std::size_t>(Figure::net_tx) + 1;

/// A figure over all rounds: the harmonic mean of rates, the arithmetic one of all else. No value: a round
/// does not have it.
struct Measured {
    std::optional<double> mean;
    std::optional<measure::Interval> interval; ///< where there are enough rounds
    measure::Comparison change;                ///< against the first model; not_enough for the first itself
};

/// The result of all rounds for one model at one point.
struct ModelSummary {
    Model model = Model::none;
    unsigned rounds = 0;
    std::array<Measured, figure_count> figures;
    std::vector<measure::CpuReport> cpus; ///< sums over the rounds
    std::vector<measure::LineReport> lines;

    [[nodiscard]] const Measured& operator[](Figure figure) const {
        return figures[static_cast<std::size_t>(figure)];
    }
    /// Cycles, or CPU seconds where these are not known; a frequency that changes is part of the cost.
    [[nodiscard]] Figure cost() const { return (*this)[Figure::cycles].mean ? Figure::cycles : Figure::cpu; }
};

/// Against the first of `results`, which all are of one point. The intervals of the changes of throughput,
/// cost, latencies and cache misses hold together in 95 of 100 experiments.
[[nodiscard]] std::vector<ModelSummary> summarize(const std::vector<ModelResult>& results);

} // namespace affinityd::ttcp
