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
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace affinityctl {

/// All that the tree, the table and the picture show.
struct MachineView {
    std::string name; ///< host name, or the folder of the recording
    affinityd::topology::Topology topology;
    std::vector<affinityd::netdev::Nic> nics; ///< those with a device behind them hang in the tree
    std::vector<affinityd::topology::PciDevice> devices;
    Occupancy occupancy;
};

using affinityd::topology::Part;

/// An interface, a device or a node without CPUs that hangs at a part.
struct Hanging {
    std::string kind;   ///< "NIC " or ""
    std::string name;   ///< "eth0", "NVMe", "node 4"
    std::string detail; ///< "ixgbe, 0000:04:00.0, 8 queues"
};

/// Tasks or an interrupt that a policy holds at a part.
struct Held {
    std::size_t tenant = 0; ///< position in Occupancy::tenants
    const Pin* pin = nullptr;
    affinityd::CpuSet cpus; ///< online ones; never empty
};

/// How a policy holds a CPU: its tasks may go there, are pinned to a wider set, or are pinned to its core.
enum class Hold { may, wide, narrow };

struct Claim {
    std::size_t tenant = 0;
    Hold hold = Hold::may;
    unsigned pins = 0, irqs = 0; ///< of the tenant, that hold the CPU
};

/// All that is on one CPU.
struct CpuLoad {
    std::vector<Claim> claims;                                  ///< by tenant
    unsigned tasks = 0, interrupts = 0;                         ///< pinned to its core
    std::vector<std::pair<std::size_t, const Pin*>> first_pins; ///< with their tenants; a few of them
};

/// The parts of a machine with all that is at each. The view must outlive it.
struct MachineParts {
    explicit MachineParts(const MachineView& view);
    MachineParts(const MachineParts&) = delete;
    MachineParts& operator=(const MachineParts&) = delete;

    /// "package 0", "node 1 (31.1 GiB)", "llc 2 (L3 11 MiB)", "core 5 (performance)", "cpu 17"; numbers are
    /// those of CPU-set expressions.
    [[nodiscard]] std::string name_of(const Part& part) const;
    /// "cache-0", "cpu-17": the id of its element in pictures.
    [[nodiscard]] std::string id_of(const Part& part) const;

    affinityd::topology::PartTree nested;
    std::map<const Part*, std::vector<Hanging>> hanging; ///< at a node or a larger part
    std::map<const Part*, std::vector<Held>> held;       ///< at the smallest that holds it, a core at least
    std::unordered_map<unsigned, CpuLoad> loads;         ///< by online CPU; an idle one may be missing

  private:
    const affinityd::topology::Topology& topology_;
    std::map<affinityd::CpuSet, std::size_t> llcs_; ///< their numbers
};

/// "0-3,8", as people read it: a list of more than some 160 characters is cut and its length told,
/// "0,2,4,6,... (4096 CPUs)".
[[nodiscard]] std::string short_list(const affinityd::CpuSet& cpus);

/// "performance", "isolated", "nohz_full": the special properties of one CPU; most have none.
[[nodiscard]] std::vector<std::string> cpu_marks(const affinityd::topology::Topology& topology, unsigned cpu);

/// "32 CPUs, 16 cores, 2 packages, 2 nodes, 62.5 GiB".
[[nodiscard]] std::string machine_summary(const affinityd::topology::Topology& topology);

/// The lines of a tree, as in lstopo's text, with what hangs at each part and what is pinned there; then
/// add_facts(). Numbers are those of CPU-set expressions.
void add_tree(const MachineView& view, Document& into);

/// Facts without a place in a tree or picture: distances, offline and isolated CPUs, kinds of cores,
/// policies.
void add_facts(const MachineView& view, Document& into);

/// A line per CPU that is present, offline ones last, as in `lscpu -e`.
[[nodiscard]] Document::Table machine_table(const MachineView& view);

/// The machine as nested boxes with interfaces in the box of their node, CPUs in the colours of the policies
/// that hold them: full where a task is pinned, pale where one may go. Each box has an id (cpu-17, core-5,
/// ...) and a tooltip.
[[nodiscard]] Document::Drawing machine_picture(const MachineView& view);

} // namespace affinityctl
