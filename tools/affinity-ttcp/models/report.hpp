// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/sample.hpp"

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
    std::string cycles_source, parts_note; ///< as cost.hpp has them
    std::optional<double> busy_before;     ///< part of all CPU time that others used before it began, 0 to 1
    CpuSet cpus;
    std::vector<PointResult> points; ///< in the order of the command line
};

/// The point that stands for a report: of what it does first, the largest size.
[[nodiscard]] const PointResult* main_point(const ModelsReport& report);

/// False: it ended before the first round was measured, and has no figures.
[[nodiscard]] bool has_rounds(const ModelsReport& report);

/// One line of JSON with the summaries and each sample. What is at the top is of the main point.
[[nodiscard]] std::string to_json(const ModelsReport& report);

} // namespace affinityd::ttcp
