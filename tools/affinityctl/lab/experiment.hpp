// SPDX-License-Identifier: Apache-2.0
// Common to all experiments of `measure`: options, the machine, the run, and the ends of their
// document.
#pragma once

#include "accounting/measurements.hpp"
#include "affinityctl/present/document.hpp"
#include "affinityctl/present/globals.hpp"
#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "experiments/frame.hpp"
#include "host/root.hpp"
#include "measure/statistics.hpp"
#include "topology/topology.hpp"

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace affinityctl {

struct ExperimentOptions {
    std::string cpus; ///< "": all that may be used
    bool priority = false;
    bool no_history = false;
    std::string svg;
    std::string state_dir = "/var/lib/affinityd";
};
/// --cpus EXPR, --priority, --svg FILE, --no-history, --state-dir DIR.
void add_experiment_options(CLI::App& verb, ExperimentOptions& options);

/// The machine that an experiment runs on: this one, as it is now.
struct Bench {
    affinityd::host::Root root;
    affinityd::topology::Topology topology;
    affinityd::CpuSet usable; ///< online, and this program may run there
    affinityd::CpuSet chosen; ///< those of --cpus
};
/// This machine. Throws a CallError: the command line makes no sense for an experiment here, or its picture
/// cannot be written.
[[nodiscard]] Bench read_bench(const Globals& globals, const ExperimentOptions& options);

/// A line on standard error. The terminal may have gone meanwhile, at which fmt::print would throw.
void tell_stderr(const std::string& line);

struct ExperimentCourse {
    std::string doing;                   ///< "measuring latency"
    double seconds = 0;                  ///< about how long it will take
    affinityd::CpuSet cpus;              ///< where it runs
    std::vector<std::string> left_out{}; ///< sentences: what this machine cannot do
    bool shows_part = false;             ///< one that is stopped is no error
};

/// A finished run, for readers of its figures.
struct MeasuredOn {
    std::string model{};                ///< of the CPUs; foreign text
    std::string cpus{};                 ///< "0-15": where it ran
    double seconds = 0;                 ///< how long it took
    std::vector<std::string> remarks{}; ///< sentences: it was not quiet, or the CPU is emulated
};

/// Says on standard error how long it will take, looks whether the machine is quiet enough, says if not, and
/// supervises `body` (experiments/frame.hpp). Throws a CallError: it did not begin, failed or was stopped.
[[nodiscard]] MeasuredOn
run_experiment(const Bench& bench, const ExperimentCourse& course, const ExperimentOptions& options,
               const std::function<affinityd::Result<bool>(affinityd::experiments::Run&)>& body);

/// `body` returns a Result of a value that knows whether it `is_whole`.
template <class Measured, class Body>
std::pair<Measured, MeasuredOn> run_experiment_for(const Bench& bench, const ExperimentCourse& course,
                                                   const ExperimentOptions& options, const Body& body) {
    std::optional<Measured> measured;
    auto on = run_experiment(bench, course, options,
                             [&](affinityd::experiments::Run& run) -> affinityd::Result<bool> {
                                 auto found = body(run);
                                 if (!found) return std::unexpected(found.error());
                                 measured.emplace(std::move(*found));
                                 return measured->is_whole;
                             });
    return {std::move(*measured), std::move(on)};
}

/// Keeps the result in the history, unless the options say no; the document, with its picture. `detail`: as
/// it is kept; "": the document's value.
[[nodiscard]] Document finish_experiment(const ExperimentOptions& options, Document document,
                                         affinityd::accounting::Experiment kept);

/// A document that begins with its title and the method in one line.
[[nodiscard]] Document experiment_document(const std::string& title, const std::string& method);
/// Findings and remarks as sentences, then what they mean for a policy.
void add_conclusions(Document& document, const std::vector<std::string>& findings,
                     const std::vector<std::string>& remarks, const std::string& meaning);
/// "Two threads on one core (AMD EPYC)"
[[nodiscard]] std::string titled(const std::string& title, const std::string& model);
/// With a capital and a full stop.
[[nodiscard]] std::string as_sentence(std::string words);

/// {"estimate", "low", "high"} in multiples of `unit`; null where there is none.
[[nodiscard]] nlohmann::json interval_json(const std::optional<affinityd::measure::Interval>& interval,
                                           double unit = 1);
/// {"verdict", "estimate", "low", "high"}, relative; null where it was not compared.
[[nodiscard]] nlohmann::json change_json(const affinityd::measure::Comparison& change);
/// A bar, or a point, with its interval in multiples of `unit`.
[[nodiscard]] Document::Point
point_of(std::string label, const std::optional<affinityd::measure::Interval>& interval, double unit);

inline constexpr double ms = 1e-3; ///< a unit of seconds

/// A cell that is the row's "name", for people, instead of the word that JSON has.
[[nodiscard]] std::string name_cell(const nlohmann::json& row);

} // namespace affinityctl
