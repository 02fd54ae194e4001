// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/sample.hpp"
#include "measure/statistics.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::ttcp {

/// A whole experiment.
struct ModelsReport {
    measure::Outcome outcome = measure::Outcome::failed;
    std::string reason;
    std::string setup; ///< for a person: the testbed and its limits (veth pairs are no NICs, emulation is no
                       ///< hardware)
    unsigned connections = 0;
    double round_seconds = 0;
    double seconds = 0;                    ///< the whole experiment
    std::string cycles_source, parts_note; ///< as sample.hpp has them
    std::optional<double> busy_before;     ///< part of all CPU time that others used before it began, 0 to 1
    CpuSet cpus;
    std::vector<PointResult> points; ///< in the order of the command line
};

/// The point that stands for a report: of what it does first, the largest size.
[[nodiscard]] const PointResult* main_point(const ModelsReport& report);

/// False: it ended before the first round was measured, and has no figures.
[[nodiscard]] bool has_rounds(const ModelsReport& report);

/// One line of JSON with the summaries and each sample. The members at the top belong to the main point.
[[nodiscard]] std::string to_json(const ModelsReport& report);

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

/// The result of all rounds for one model at one point.
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
