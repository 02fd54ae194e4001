// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/result.hpp"

#include <string>

namespace affinityd::accounting {

/// How the measuring child ended.
struct MeasuringRun {
    std::string output; ///< what it printed: its report, or ""
    /// Of the child itself; counts where there is no report.
    measure::Outcome outcome = measure::Outcome::done;
    std::string fault; ///< for a person; "" with Outcome::done
};

} // namespace affinityd::accounting
