// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/advice.hpp"
#include "affinityctl/values/locality.hpp"
#include "affinityctl/values/read_counts.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// All that `locality` has to tell.
struct LocalityReport {
    std::string subject; ///< "policy nginx", "all processes"
    ReadCounts seen;     ///< of the processes that are meant
    LocalityFigures figures;
    std::vector<ArrivalPlace> arrivals;
    LocalityFacts facts;
    std::string
        busiest; ///< whom the facts are about where all processes are meant: a name; "": all that are meant
    std::string why_sampled; ///< why not every read was counted; "": it was
};

} // namespace affinityctl
