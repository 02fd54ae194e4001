// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/sample.hpp"

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
    std::string direction; ///< of the system under test: "transmit" or "receive"
    double round_seconds = 0;
    double seconds = 0; ///< the whole experiment
    std::string cycles_source;
    CpuSet cpus;
    std::vector<ModelResult> results;
};

/// One line of JSON with the summaries and each sample.
[[nodiscard]] std::string to_json(const ModelsReport& report);

} // namespace affinityd::ttcp
