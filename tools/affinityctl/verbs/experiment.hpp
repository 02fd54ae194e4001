// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/measurements.hpp"
#include "affinityctl/values/globals.hpp"
#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "experiments/frame/supervision.hpp"
#include "host/root.hpp"
#include "topology/topology.hpp"

#include <expected>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace affinityctl {

/// The options that all experiments of `measure` have.
struct ExperimentOptions {
    bool priority = false;
    bool no_history = false;
    std::string svg;
    std::string state_dir = "/var/lib/affinityd";
};
/// --svg FILE, --no-history, --state-dir DIR.
void add_result_options(CLI::App& verb, ExperimentOptions& options);
/// These, and --priority.
void add_experiment_options(CLI::App& verb, ExperimentOptions& options);

/// The machine that an experiment runs on: this one, as it is now.
struct Bench {
    affinityd::host::Root root;
    affinityd::topology::Topology topology;
    affinityd::CpuSet usable; ///< online, and this program may run there
};
[[nodiscard]] affinityd::Result<Bench> read_bench();

/// The CPUs of `usable` that an expression as in policies stands for; all of them for "". What is wrong with
/// the expression is told on standard error; the exit code then.
[[nodiscard]] std::expected<affinityd::CpuSet, int> chosen_cpus(const Bench& bench,
                                                                const std::string& expression);

/// What is to be told before and after.
struct ExperimentCourse {
    std::string doing;      ///< "measuring latency"
    double seconds = 0;     ///< about how long it will take
    affinityd::CpuSet cpus; ///< where it runs
};
struct ExperimentEnd {
    affinityd::experiments::Ending ending = affinityd::experiments::Ending::done;
    double seconds = 0;               ///< how long it took
    std::vector<std::string> remarks; ///< for people to know who read the figures: that it was not quiet, or
                                      ///< the CPU is emulated
};
/// Says on standard error how long it will take, looks whether the machine is quiet enough, says if not, and
/// supervises `body` (experiments/frame/supervision.hpp). On an Error nothing was done.
[[nodiscard]] affinityd::Result<ExperimentEnd>
run_experiment(const Bench& bench, const ExperimentCourse& course, const ExperimentOptions& options,
               const std::function<void(affinityd::experiments::Run&)>& body);

/// Keeps it in the measurement history, unless the options say no. That it could not be kept is told on
/// standard error, and no failure.
void keep_result(const ExperimentOptions& options, const affinityd::accounting::Experiment& experiment);

/// What this machine cannot do, told on standard error; the exit code.
int refuse(const std::string& sentence);

} // namespace affinityctl
