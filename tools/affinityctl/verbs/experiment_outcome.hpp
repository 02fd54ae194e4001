// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/globals.hpp"
#include "affinityctl/verbs/experiment.hpp"
#include "affinityctl/views/experiments/measured_on.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// A finished experiment, as it is shown and kept.
struct ExperimentOutcome {
    std::string kind;    ///< as in the history: "smt"
    std::string summary; ///< one line
    std::string text;    ///< for people
    std::string picture; ///< SVG
    nlohmann::json document;
};

/// Keeps it, and shows it as the options say; the exit code.
int finish_experiment(const Globals& globals, const ExperimentOptions& options, const MeasuredOn& on,
                      const ExperimentOutcome& outcome);

/// What the views tell of the machine and the run; `cpus`: which the experiment might use.
[[nodiscard]] MeasuredOn measured_on(const Bench& bench, const affinityd::CpuSet& cpus,
                                     const ExperimentEnd& end);

/// The command line makes sense for an experiment on this machine, and its picture can be written; else the
/// exit code, after a complaint.
[[nodiscard]] int check_experiment(const Globals& globals, const ExperimentOptions& options);

} // namespace affinityctl
