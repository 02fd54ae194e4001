// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"
#include "locality/locality.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace affinityctl {

/// The facts that the advice depends on.
struct LocalityFacts {
    std::uint64_t reads = 0;      ///< of which the arrival is known; or samples
    std::uint64_t unknown = 0;    ///< of which it is not
    std::uint64_t loopback = 0;   ///< whose packets came over loopback
    double same_core = 0;         ///< 0..1
    std::size_t cpus = 0;         ///< online
    std::size_t arrival_cpus = 0; ///< that take in 5 % or more
    std::size_t workers = 0;      ///< processes that read 5 % or more
    std::size_t reader_cpus = 0;  ///< on which 5 % or more are read
    std::size_t listeners = 0;    ///< at one address and port; 0: none, or not known
    std::string steered_by{};     ///< the policy that would steer listeners of theirs; "": none
};

/// All but `cpus`, `listeners` and `steered_by`.
[[nodiscard]] LocalityFacts facts_of(const affinityd::locality::LocalityFigures& figures,
                                     const std::vector<affinityd::locality::ReadCount>& counts,
                                     const std::function<bool(int pid)>& is_meant);

/// The remedy for the locality that was seen: a word for JSON ("steer_accept"), and one sentence for people.
struct Advice {
    const char* word;
    std::string sentence;
};
[[nodiscard]] Advice advice_for(const LocalityFacts& facts);

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
