// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/occupancy.hpp"
#include "netdev/nic.hpp"
#include "topology/parts.hpp"
#include "topology/reader.hpp"
#include "topology/topology.hpp"

#include <map>
#include <string>
#include <vector>

namespace affinityctl {

/// Something attached to a part of the machine: an interface, a disk, a memory-only node.
struct Hanging {
    enum class Kind { nic, device, memory };
    Kind kind = Kind::nic;
    std::string name;   ///< "eth0", "NVMe", "node 4"
    std::string detail; ///< "ixgbe, 0000:04:00.0, 8 queues"
};

/// Everything that the tree, the table and the picture show.
struct MachineView {
    std::string name; ///< host name, or the folder of the recording
    affinityd::topology::Topology topology;
    std::vector<affinityd::netdev::Nic> nics; ///< those with a device behind them hang in the tree
    std::vector<affinityd::topology::PciDevice> devices;
    Occupancy occupancy;
};

using affinityd::topology::Part;

/// What hangs where, by the part's address in `tree`: interfaces and devices at their node, memory-only nodes
/// at the nearest node, and anything without a known place at the machine.
using HangingByPart = std::map<const Part*, std::vector<Hanging>>;
[[nodiscard]] HangingByPart hang_up(const MachineView& view, const Part& tree);

} // namespace affinityctl
