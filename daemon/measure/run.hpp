// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/result.hpp"

#include <string>

namespace affinityd::measure {

/// How a measuring child ended.
struct Run {
    std::string output;              ///< what it printed: its report, or ""
    Outcome outcome = Outcome::done; ///< of the child itself; counts only where there is no report
    std::string fault;               ///< for a person; "" with Outcome::done
};

} // namespace affinityd::measure
