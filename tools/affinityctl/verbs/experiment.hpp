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
/// --svg FILE, --no-history, --state-dir DIR.
void add_result_options(CLI::App& verb, ExperimentOptions& options);
/// These, --cpus EXPR and --priority.
void add_experiment_options(CLI::App& verb, ExperimentOptions& options);

/// The machine that an experiment runs on: this one, as it is now.
struct Bench {
    affinityd::host::Root root;
    affinityd::topology::Topology topology;
    affinityd::CpuSet usable; ///< online, and this program may run there
    affinityd::CpuSet chosen; ///< those of --cpus
};
/// The command line makes sense for an experiment on this machine, and its picture can be written.
[[nodiscard]] std::expected<void, CallError> check_experiment(const Globals& globals,
                                                              const ExperimentOptions& options);
/// After that.
[[nodiscard]] std::expected<Bench, CallError> read_bench(const Globals& globals,
                                                         const ExperimentOptions& options);

struct ExperimentCourse {
    std::string doing;      ///< "measuring latency"
    double seconds = 0;     ///< about how long it will take
    affinityd::CpuSet cpus; ///< where it runs
};

/// A finished run, for readers of its figures.
struct MeasuredOn {
    std::string model{};                ///< of the CPUs; foreign text
    std::string cpus{};                 ///< "0-15": where it ran
    double seconds = 0;                 ///< how long it took
    std::vector<std::string> remarks{}; ///< sentences: it was not quiet, or the CPU is emulated
};

/// Says on standard error how long it will take, looks whether the machine is quiet enough, says if not, and
/// supervises `body` (experiments/frame.hpp). An error: it did not begin, failed or was stopped.
[[nodiscard]] std::expected<MeasuredOn, CallError>
run_experiment(const Bench& bench, const ExperimentCourse& course, const ExperimentOptions& options,
               const std::function<affinityd::Result<bool>(affinityd::experiments::Run&)>& body);

/// `body` returns a Result of a value that knows whether it `is_whole`.
template <class Measured, class Body>
std::expected<std::pair<Measured, MeasuredOn>, CallError>
run_experiment_for(const Bench& bench, const ExperimentCourse& course, const ExperimentOptions& options,
                   const Body& body) {
    std::optional<Measured> measured;
    auto on = run_experiment(bench, course, options,
                             [&](affinityd::experiments::Run& run) -> affinityd::Result<bool> {
                                 auto found = body(run);
                                 if (!found) return std::unexpected(found.error());
                                 measured.emplace(std::move(*found));
                                 return measured->is_whole;
                             });
    if (!on) return std::unexpected(on.error());
    return std::pair(std::move(*measured), std::move(*on));
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

// Figures as all experiments show them. Each value of JSON is null where nothing is known, and its words are
// "-" then.

extern const Fields interval_fields, change_fields;
/// {"mean", "low", "high"} in milliseconds.
[[nodiscard]] nlohmann::json ms_json(const std::optional<affinityd::measure::Interval>& seconds);
/// {"verdict", "estimate", "low", "high"}, relative.
[[nodiscard]] nlohmann::json change_json(const affinityd::measure::Comparison& longer);
[[nodiscard]] std::string ms_words(const nlohmann::json& ms); ///< "3.53 (3.41 to 3.66)"
[[nodiscard]] std::string
change_words(const nlohmann::json& change); ///< "+75 % (71 to 79)", "no difference shown"
/// A bar with its interval, in milliseconds.
[[nodiscard]] Document::Point ms_bar(std::string label,
                                     const std::optional<affinityd::measure::Interval>& seconds);

} // namespace affinityctl
