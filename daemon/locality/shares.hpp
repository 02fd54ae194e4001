// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::locality {

/// Parts of the reads, 0..1, whose packet was taken in so near to where it was read. Each includes those
/// before it.
struct NearShares {
    double cpu = 0, core = 0, llc = 0, node = 0;
};

/// (CPU where packets arrive, CPU where they are read) -> reads.
using ReadMatrix = std::map<std::pair<unsigned, unsigned>, std::uint64_t>;

/// One process, or all of them together.
struct WorkerFigures {
    int pid = 0; ///< 0: all
    std::string name;
    std::uint64_t reads = 0;   ///< those of which the arrival is not known included
    std::uint64_t unknown = 0; ///< those of which it is not
    NearShares same;           ///< of those of which it is known
    NearShares chance;         ///< what these would be if packets came to it wherever they arrive
};

struct LocalityFigures {
    std::vector<WorkerFigures> workers; ///< the busiest first
    WorkerFigures total;
    ReadMatrix matrix; ///< without those of which the arrival is not known
};

/// A CPU where packets arrive, and what brings them there.
struct ArrivalPlace {
    unsigned cpu = 0;
    std::uint64_t reads = 0;
    std::vector<std::string> sources; ///< "eth0 rx-0 (IRQ 45)"; never empty
    bool is_interrupt = false;        ///< an interrupt of a queue explains it
};

} // namespace affinityd::locality
