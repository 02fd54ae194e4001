// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/sample.hpp"

#include <vector>

namespace affinityd::ttcp {

/// What each CPU did, and how many interrupts it took of each line, over all rounds.
[[nodiscard]] std::vector<measure::CpuReport> cpus_of(const ModelResult& result);
[[nodiscard]] std::vector<measure::LineReport> lines_of(const ModelResult& result);

} // namespace affinityd::ttcp
