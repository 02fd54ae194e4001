// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"
#include "topology/topology.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::locality {

/// Reads of one process whose packets were taken in on one CPU, and which it read on another, or the same.
struct ReadCount {
    int pid = 0;                     ///< as this PID namespace has it
    std::uint64_t network_space = 0; ///< inode of the socket's network namespace; 0: not known
    unsigned device = 0; ///< ifindex there of the interface where the flow came in last; 0: not known
    unsigned napi = 0;   ///< NAPI instance that took the flow in last; 0: not known
    std::optional<unsigned> arrival; ///< CPU of that softirq; no value: not known
    unsigned reader = 0;             ///< CPU on which it was read
    int thread = 0;                  ///< tid that reads; 0: not known
    unsigned protocol = 6;           ///< IPPROTO_TCP, IPPROTO_UDP ...
    std::uint64_t reads = 0;
};

/// The reads counted in some time, by thread and by the CPU where the kernel took the packets in.
struct ReadCounts {
    std::vector<ReadCount> counts;
    std::map<int, std::string> names; ///< of processes; any bytes: show them through printable()
    double seconds = 0;               ///< how long it was watched
    bool has_other_protocols = true;  ///< not only TCP
    std::vector<std::string> notes{}; ///< for people: what is missing, and why
    std::uint64_t lost = 0;           ///< reads for which there was no room
    std::uint64_t in_softirq = 0;     ///< times that the kernel itself took data where no process reads
    std::uint64_t of_unknown = 0;     ///< reads of processes that ended before it was known whose they are
};

/// How near two CPUs can be; each level holds the ones before it.
enum class NearLevel { cpu, core, llc, node };
inline constexpr std::array near_levels{NearLevel::cpu, NearLevel::core, NearLevel::llc, NearLevel::node};
/// "CPU", "core", "LLC group", "node"
[[nodiscard]] std::string_view name_of(NearLevel level);

/// Which CPUs are near each other. A CPU that the topology does not have (it went offline meanwhile) is near
/// itself only.
class Nearness {
  public:
    explicit Nearness(const topology::Topology& topology);
    /// The group of a CPU, as the lowest CPU in it.
    [[nodiscard]] unsigned group(NearLevel level, unsigned cpu) const;
    [[nodiscard]] bool is_same(NearLevel level, unsigned one, unsigned other) const {
        return group(level, one) == group(level, other);
    }

  private:
    std::array<std::map<unsigned, unsigned>, near_levels.size()> groups_; ///< CPU -> lowest CPU, by level
};

/// Parts of the reads, 0..1, whose packet was taken in so near to where it was read. Each includes those
/// before it.
struct NearShares {
    double cpu = 0, core = 0, llc = 0, node = 0;
};

/// (CPU where packets arrive, CPU where they are read) -> reads.
using ReadMatrix = std::map<std::pair<unsigned, unsigned>, std::uint64_t>;

/// A process, or all of them together.
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

/// Works out how local the reads of the processes are that `is_meant`. The share by chance takes where
/// packets arrive (for all processes of the name, meant or not) and where the process reads as independent:
/// 1/N for a worker pinned to one of N CPUs over which flows are spread. All together have the mean by their
/// reads. Pure.
[[nodiscard]] LocalityFigures figures_of(const ReadCounts& seen, const Nearness& near,
                                         const std::function<bool(int pid)>& is_meant);

/// The CPUs where packets arrive of which processes that `is_meant` read, the busiest first, with what brings
/// them there: the queue by its NAPI instance, where the kernel links the two (6.8); else the interrupts of
/// the flow's interface that go to this CPU now; else RPS, RFS, a NAPI thread; or why there is none. `space`:
/// the network namespace that `machine` was read in. Pure.
[[nodiscard]] std::vector<ArrivalPlace> arrival_places(const std::vector<ReadCount>& counts,
                                                       const machine::Machine& machine, std::uint64_t space,
                                                       const std::function<bool(int pid)>& is_meant);

} // namespace affinityd::locality
