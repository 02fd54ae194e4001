// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "measure/network_space.hpp"

#include <string>
#include <vector>

namespace affinityd::measure {

/// One connection's way: from the NIC under test to its peer.
struct Path {
    std::string nic;                ///< the NIC under test
    std::size_t here = 0;           ///< position of its namespace in the bed
    std::size_t there = 0;          ///< ... and of the peer's
    std::string here_address;       ///< IPv4, in numbers
    std::string there_address;
    std::vector<int> threads;       ///< tids of its NAPI threads; empty where interrupts do the work
    std::vector<unsigned> irqs;     ///< its interrupt lines; empty for veth, which has none
};

/// What an experiment runs on. Goes away with this object, and when the process is killed: namespaces have no names.
struct Bed {
    std::vector<NetworkSpace> spaces;
    std::vector<Path> paths;
    std::string description;        ///< for a person: what this is, and what it is not
};

/// The most connections a bed is made for.
inline constexpr unsigned most_connections = 64;

/// So many veth pairs from one namespace to another, each end with a NAPI thread of its own, which does here what an interrupt
/// does for a NIC. Needs root.
[[nodiscard]] Result<Bed> make_veth_bed(const host::Root& root, unsigned connections);

/// Where what takes the interrupts of this path's NIC may run from now on.
[[nodiscard]] Result<void> place_interrupts(const host::Root& root, const Path& path, const CpuSet& cpus);

} // namespace affinityd::measure
