// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/advice.hpp"
#include "locality/locality.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// All that `locality` has to tell.
struct LocalityReport {
    std::string subject;                  ///< "policy nginx", "all processes"
    affinityd::locality::ReadCounts seen; ///< of the processes that are meant
    affinityd::locality::LocalityFigures figures;
    std::vector<affinityd::locality::ArrivalPlace> arrivals;
    LocalityFacts facts;
    std::string
        busiest; ///< whom the facts are about where all processes are meant: a name; "": all that are meant
};

} // namespace affinityctl
