// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/result.hpp"
#include "options.hpp"

#include <cstdio>

namespace affinity_ttcp {

/// The report as ttcp has it, one block for each end that ran here, and what ttcp does not know below.
void print(std::FILE* out, const Options& options, const affinityd::measure::Report& report);

} // namespace affinity_ttcp
