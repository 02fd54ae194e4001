// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "measure/lent_nic.hpp"
#include "measure/network_space.hpp"

#include <string>
#include <utility>
#include <vector>

namespace affinityd::measure {

/// One connection's way: from the NIC under test to its peer.
struct Path {
    std::string nic;          ///< the NIC under test
    std::size_t here = 0;     ///< position of its namespace in the bed
    std::size_t there = 0;    ///< ... and of the peer's
    std::string here_address; ///< IPv4, in numbers
    std::string there_address;
    std::vector<int> threads;   ///< tids of its NAPI threads; empty where interrupts do the work
    std::vector<unsigned> irqs; ///< its interrupt lines; empty for veth, which has none
};

/// What an experiment runs on. Goes away with this object, and when the process is killed: namespaces have no
/// names.
struct Bed {
    std::vector<NetworkSpace> spaces;
    std::vector<Path> paths;
    std::string description; ///< for a person: what this is, and what it is not
    std::vector<LentNic>
        lent{}; ///< in the order of the paths they take packets for; last, for they go before the spaces do
};

/// The most connections a bed is made for.
inline constexpr unsigned most_connections = 64;

/// So many veth pairs from one namespace to another, each end with a NAPI thread of its own, which does here
/// what an interrupt does for a NIC. Needs root.
[[nodiscard]] Result<Bed> make_veth_bed(const host::Root& root, unsigned connections);

/// Two NICs with a wire between them.
using NicPair = std::pair<std::string, std::string>;

/// Each NIC of the pairs takes the packets of one connection from its partner: twice as many connections as
/// pairs. The first of each goes to one namespace, the second to another; both are brought back by the end of
/// the bed. Needs root.
[[nodiscard]] Result<Bed> make_nic_bed(const host::Root& root, const std::vector<NicPair>& pairs);

/// Where what takes the interrupts of this path's NIC may run from now on.
[[nodiscard]] Result<void> place_interrupts(const host::Root& root, const Path& path, const CpuSet& cpus);

} // namespace affinityd::measure
