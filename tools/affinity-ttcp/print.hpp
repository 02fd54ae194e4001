// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/options.hpp"
#include "measure/result.hpp"

#include <cstdio>

namespace affinityd::ttcp {

/// The report in the form of ttcp, one block for each end that ran here, followed by what ttcp does not
/// measure.
void print(std::FILE* out, const Options& options, const measure::Report& report);

} // namespace affinityd::ttcp
