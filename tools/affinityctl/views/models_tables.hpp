// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/report.hpp"
#include "affinity-ttcp/models/summary.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// The experiment for a person: the models side by side, what each CPU did, and the interrupts of the NICs.
[[nodiscard]] std::string models_text(const affinityd::ttcp::ModelsReport& report, bool color);

} // namespace affinityctl
