// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/sample.hpp"
#include "measure/statistics.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::ttcp {

/// Over all rounds: the mean, and its interval where there are enough of them.
struct Rate {
    std::optional<double> mean; ///< no value: a round did not count it
    std::optional<measure::Interval> interval;
};

struct PerSecond {
    Rate switches, migrations, retransmits; ///< of the processes under test
    Rate interrupts, ipis, net_rx, net_tx;  ///< of the machine, as KernelCounts
};

struct PerBit {
    std::optional<double> instructions;
    Rate cache_misses;
    measure::Comparison misses_change;
};

/// A cost in its parts. Means over equal times; the parts add up to the total.
struct PartIntervals {
    std::optional<measure::Interval> total, processes, softirq, interrupts;
};

struct CostSummary {
    PartIntervals cycles_per_bit; ///< GHz/Gbps
    PartIntervals cpu_seconds;    ///< per gigabit; with Work::answer per exchange
    measure::Comparison change;   ///< against the first model, of CPU seconds where cycles are not known
};

struct ExchangeSummary {
    std::optional<measure::Interval> per_second; ///< harmonic mean
    std::optional<measure::Interval> p50, p99;   ///< seconds; means of the rounds'
    measure::Comparison p50_change, p99_change;  ///< against the first model: `less` is better
};

/// What the rounds show about one model at one point.
struct ModelSummary {
    Model model = Model::none;
    unsigned rounds = 0;
    std::optional<measure::Interval> bits_per_second; ///< harmonic mean
    measure::Comparison gain; ///< of throughput against the first model; not_enough for the first itself
    CostSummary cost;
    PerBit per_bit;
    std::optional<double> busy_cpus; ///< CPU time of the system under test over wall time
    PerSecond per_second;
    std::optional<ExchangeSummary> exchanges; ///< with Work::answer
    std::vector<measure::CpuReport> cpus;     ///< sums over the rounds
    std::vector<measure::LineReport> lines;
};

/// Against the first of `results`, which all are of one point. The intervals of all changes hold together in
/// 95 of 100 experiments.
[[nodiscard]] std::vector<ModelSummary> summarize(const std::vector<ModelResult>& results);

/// "+29.1 % (27.0 to 31.2)", "no difference shown (-2.0 to +3.1)", "too few samples".
[[nodiscard]] std::string describe(const measure::Comparison& comparison);

} // namespace affinityd::ttcp
