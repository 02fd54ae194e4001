// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/client/occupancy.hpp"
#include "affinityctl/present/document.hpp"
#include "base/cpu_set.hpp"
#include "netdev/nic.hpp"
#include "topology/parts.hpp"
#include "topology/reader.hpp"
#include "topology/topology.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityctl {

using affinityd::topology::Part;

/// Something attached to a part of the machine: an interface, a disk, a memory-only node.
struct Hanging {
    enum class Kind { nic, device, memory };
    Kind kind = Kind::nic;
    std::string name;   ///< "eth0", "NVMe", "node 4"
    std::string detail; ///< "ixgbe, 0000:04:00.0, 8 queues"
};

/// All that the tree, the table and the picture show.
struct MachineView {
    std::string name; ///< host name, or the folder of the recording
    affinityd::topology::Topology topology;
    std::vector<affinityd::netdev::Nic> nics; ///< those with a device behind them hang in the tree
    std::vector<affinityd::topology::PciDevice> devices;
    Occupancy occupancy;
};

/// Things attached to parts, by the part's address in `tree`: interfaces and devices at their node,
/// memory-only nodes at the nearest node, and anything without a known place at the machine.
using HangingByPart = std::map<const Part*, std::vector<Hanging>>;
[[nodiscard]] HangingByPart hang_up(const MachineView& view, const Part& tree);

/// "0-3,8", as people read it: a list of more than some 160 characters is cut and its length told,
/// "0,2,4,6,... (4096 CPUs)".
[[nodiscard]] std::string short_list(const affinityd::CpuSet& cpus);

/// Finds the part of a machine that holds certain CPUs, without a look at all of its thousands.
class PartSearch {
  public:
    /// `machine` must outlive this object and not change.
    explicit PartSearch(const Part& machine);
    /// The deepest part that holds all of `cpus`, at most as deep as a core; the whole machine if there is
    /// none, or for the empty set.
    [[nodiscard]] const Part& smallest_holding(const affinityd::CpuSet& cpus) const;

  private:
    void add(const Part& part);

    const Part& machine_;
    std::unordered_map<unsigned, const Part*> deepest_; ///< by CPU
    std::unordered_map<const Part*, const Part*> outer_;
};

/// "31.1 GiB", "1 MiB", "32 KiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// The names of the parts of one machine. CPU-set expressions use the same numbers.
class PartNames {
  public:
    /// The topology must outlive this object.
    explicit PartNames(const affinityd::topology::Topology& topology);
    /// "package 0", "node 1 (31.1 GiB)", "llc 2 (L3 11 MiB)", "core 5", "CPU 17".
    [[nodiscard]] std::string of(const Part& part) const;
    /// "performance": the kind of a core, "" where all are alike.
    [[nodiscard]] std::string kind_of(const Part& core) const;

  private:
    [[nodiscard]] std::string of_cache(const Part& part) const;

    const affinityd::topology::Topology& topology_;
    std::map<affinityd::CpuSet, std::size_t> llcs_; ///< their numbers
};

/// The id of a part's element in pictures: "cache-0", "cpu-17".
[[nodiscard]] std::string part_id(const affinityd::topology::Topology& topology, const Part& part);

/// "32 CPUs, 16 cores, 2 packages, 2 nodes, 62.5 GiB".
[[nodiscard]] std::string machine_summary(const affinityd::topology::Topology& topology);

/// "isolated", "nohz_full": what the kernel was told of one CPU when it was booted.
[[nodiscard]] std::vector<std::string> boot_marks(const affinityd::topology::Topology& topology,
                                                  unsigned cpu);

/// "performance" and those: the special properties of one CPU; most have none.
[[nodiscard]] std::vector<std::string> cpu_marks(const affinityd::topology::Topology& topology, unsigned cpu);

/// How a policy holds a CPU: its tasks may go there, are pinned to a wider set, or are pinned to its core.
enum class Hold { may, wide, narrow };

struct Claim {
    std::size_t tenant = 0; ///< position in Occupancy::tenants
    Hold hold = Hold::may;
    unsigned pins = 0, irqs = 0; ///< of the tenant, that hold the CPU
};

struct OwnedPin {
    std::size_t tenant = 0; ///< position in Occupancy::tenants
    const Pin* pin = nullptr;
};

/// All that is on one CPU.
struct CpuLoad {
    static constexpr std::size_t most_pins = 16;
    std::vector<Claim> claims;          ///< by tenant
    unsigned tasks = 0, interrupts = 0; ///< pinned to its core
    std::vector<OwnedPin> first_pins;   ///< of all claims, at most `most_pins`
    [[nodiscard]] std::size_t pins() const;
};
/// By online CPU; one that nobody holds may be missing. The pins are those of the view, which must outlive
/// them.
using CpuLoads = std::unordered_map<unsigned, CpuLoad>;
[[nodiscard]] CpuLoads loads_of(const MachineView& view);

struct Badge {
    unsigned tasks = 0, interrupts = 0;
};
/// By part and tenant, what is pinned to the part or to several of its cores.
using Badges = std::map<const Part*, std::map<std::size_t, Badge>>;
[[nodiscard]] Badges badges_of(const MachineView& view, const Part& machine);

/// "3 tasks", in the unit of the occupancy.
[[nodiscard]] std::string amount_of(const Occupancy& occupancy, unsigned tasks);

/// The lines of a tree, as in lstopo's text, with what hangs at each part and what is pinned there; then
/// facts without a place in a tree: distances, offline and isolated CPUs, kinds of cores. Numbers are those
/// of CPU-set expressions.
void add_tree(const MachineView& view, Document& into);

/// One line per CPU that is present, offline ones last, as in `lscpu -e`.
[[nodiscard]] Document::Table machine_table(const MachineView& view);

/// The machine as nested boxes, interfaces hanging below their node, CPUs in the colours of the policies that
/// hold them: full where a task is pinned, pale where one may go. Each box has an id (cpu-17, core-5, ...)
/// and a tooltip.
[[nodiscard]] Document::Drawing machine_picture(const MachineView& view);

} // namespace affinityctl
