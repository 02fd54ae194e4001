// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "measure/result.hpp"
#include "measure/statistics.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::measure {

/// The four affinity models of Foong, Fung and Newell: what is bound to one CPU. Pure values; models_run
/// carries them out.
enum class Model { none, irq, process, full };
inline constexpr std::array<Model, 4> all_models{Model::none, Model::irq, Model::process, Model::full};
[[nodiscard]] std::string_view to_string(Model model);
[[nodiscard]] std::optional<Model> parse_model(std::string_view text);
[[nodiscard]] constexpr bool binds_interrupts(Model model) {
    return model == Model::irq || model == Model::full;
}
[[nodiscard]] constexpr bool binds_processes(Model model) {
    return model == Model::process || model == Model::full;
}

/// The CPU of connection `index` of `count`: neighbours together, as in the paper (of 8 connections on 2
/// CPUs, 0 to 3 on the first). `cpus` must not be empty.
[[nodiscard]] unsigned cpu_of(unsigned index, unsigned count, const CpuSet& cpus);

/// The order in which `models` run, `rounds` times each: forward, then backward, and so on, so that a steady
/// drift hits all alike. Positions in `models`: the same model may be in it twice (an A/A run).
[[nodiscard]] std::vector<std::size_t> interleave(std::size_t models, unsigned rounds);

/// One model in one round.
struct ModelSample {
    double bits_per_second = 0;
    std::uint64_t bytes = 0; ///< that arrived
    double cpu_seconds = 0;  ///< of the system under test: its processes and what takes its interrupts
    double wall_seconds = 0;
    std::optional<double> cycles_per_bit; ///< GHz/Gbps
    std::optional<std::uint64_t> instructions,
        cache_misses; ///< of its processes; nothing: no hardware counters
    std::uint64_t switches = 0;
    std::optional<std::uint64_t> migrations;
    std::optional<std::uint64_t> retransmits;
    std::vector<CpuReport> cpus;
    std::vector<LineReport> lines; ///< interrupts of the NICs under test
};

struct ModelResult {
    Model model = Model::none;
    std::vector<ModelSample> samples;
};

/// What the rounds say about one model.
struct ModelSummary {
    Model model = Model::none;
    unsigned rounds = 0;
    std::optional<Interval> bits_per_second; ///< harmonic mean
    std::optional<Interval> cycles_per_bit;
    std::optional<double> instructions_per_bit, cache_misses_per_bit; ///< over all rounds
    double busy_cpus = 0; ///< CPUs' worth of time the system under test used
    Comparison gain;      ///< of throughput against the first model; not_enough for the first itself
    Comparison cost;      ///< of cycles per bit against the first model: `less` is better
    double switches_per_second = 0;
    std::optional<double> migrations_per_second;
    std::optional<double> retransmits_per_second;
    std::vector<CpuReport> cpus; ///< sums over the rounds
    std::vector<LineReport> lines;
};

/// Against the first of `results`. The intervals of all gains and costs hold together in 95 of 100
/// experiments.
[[nodiscard]] std::vector<ModelSummary> summarize(const std::vector<ModelResult>& results);

/// "+29.1 % (27.0 to 31.2)", "no difference shown (-2.0 to +3.1)", "too few samples".
[[nodiscard]] std::string describe(const Comparison& comparison);

/// A whole experiment.
struct ModelsReport {
    Outcome outcome = Outcome::failed;
    std::string reason;
    std::string
        setup; ///< what was measured on what, for a person: veth pairs are no NICs, emulation is no hardware
    unsigned connections = 0;
    std::string direction; ///< of the system under test: "transmit" or "receive"
    double round_seconds = 0;
    double seconds = 0; ///< the whole experiment
    std::string cycles_source;
    CpuSet cpus;
    std::vector<ModelResult> results;
};

/// One line of JSON with the summaries and each sample.
[[nodiscard]] std::string to_json(const ModelsReport& report);

} // namespace affinityd::measure
