// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/advice.hpp"
#include "affinityctl/present/document.hpp"
#include "locality/locality.hpp"

#include <cstddef>
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
        busiest; ///< where all processes are meant: the name of those that the facts are about; else ""
};

/// Reads by process, the map of arrivals and reads, the queues that bring packets, and the advice. In JSON
/// all raw counts, too.
[[nodiscard]] Document locality_document(const LocalityReport& report,
                                         const affinityd::locality::Nearness& near);
extern const Fields locality_answer;

/// The matrix by groups of a level, rows of where packets arrive: parts of the row that are read in each
/// group.
[[nodiscard]] Document::Grid grid_of(const affinityd::locality::ReadMatrix& matrix,
                                     const affinityd::locality::Nearness& near,
                                     affinityd::locality::NearLevel level);

} // namespace affinityctl
