// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netdev/nic.hpp"
#include "occupancy.hpp"
#include "topology/parts.hpp"
#include "topology/pci.hpp"
#include "topology/topology.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace affinityctl {

/// Something that hangs at a part of the machine: an interface, a disk, a memory-only node.
struct Hanging {
    enum class Kind { nic, device, memory };
    Kind kind = Kind::nic;
    std::string name;   ///< "eth0", "NVMe", "node 4"
    std::string detail; ///< "ixgbe, 0000:04:00.0, 8 queues"
};

/// All that the tree, the table and the picture show, in one place.
struct MachineView {
    std::string name; ///< host name, or the folder of the recording
    affinityd::topology::Topology topology;
    std::vector<affinityd::netdev::Nic> nics; ///< those with a device behind them hang in the tree
    std::vector<affinityd::topology::PciDevice> devices;
    Occupancy occupancy;
};

using affinityd::topology::Part;

/// "31.1 GiB", "1 MiB", "32 KiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// "package 0", "node 1 (31.1 GiB)", "llc 2 (L3 11 MiB)", "core 5", "CPU 17": with the numbers that CPU-set
/// expressions use.
[[nodiscard]] std::string part_name(const affinityd::topology::Topology& topology, const Part& part);

/// "32 CPUs, 16 cores, 2 packages, 2 nodes, 62.5 GiB".
[[nodiscard]] std::string machine_summary(const affinityd::topology::Topology& topology);

/// "isolated", "nohz_full", "performance": what is special about one CPU; empty for most.
[[nodiscard]] std::vector<std::string> cpu_marks(const affinityd::topology::Topology& topology, unsigned cpu);

/// The deepest part that holds all of `cpus`, not deeper than a core; the whole machine if there is none
/// (also for the empty set).
[[nodiscard]] const Part& smallest_holding(const Part& whole, const affinityd::CpuSet& cpus);

/// What hangs where, by the part's address in `tree`. Interfaces and devices at their node, memory-only nodes
/// at the node nearest to them; what has no known place at the machine.
[[nodiscard]] std::map<const Part*, std::vector<Hanging>> hang_up(const MachineView& view, const Part& tree);

} // namespace affinityctl
