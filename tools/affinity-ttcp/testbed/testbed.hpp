// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/testbed/network_space.hpp"
#include "affinity-ttcp/testbed/nics.hpp"
#include "base/cpu_set.hpp"
#include "base/error.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::ttcp {

/// The path of one connection, from the NIC under test to its peer.
struct Path {
    std::string nic;          ///< the NIC under test
    std::size_t here = 0;     ///< position of its namespace in the testbed
    std::size_t there = 0;    ///< position of the peer's namespace
    std::string here_address; ///< IPv4, in numbers
    std::string there_address;
    std::vector<int> threads;   ///< tids of its NAPI threads; empty where interrupts do the work
    std::vector<unsigned> irqs; ///< its interrupt lines; empty for veth, which has none
};

/// The network that an experiment runs on. The namespaces have no names, so they end with this object, or
/// with the process if that is killed.
struct Testbed {
    std::vector<NetworkSpace> spaces;
    std::vector<Path> paths;
    std::string description;           ///< for a person: what this is and what it is not
    std::optional<NicKeeper> keeper{}; ///< of borrowed NICs; last, because it ends before the spaces
};

/// The most connections of a testbed.
inline constexpr unsigned most_connections = 64;

/// Makes that many veth pairs between two namespaces. Each end has a NAPI thread, which does here what an
/// interrupt does for a NIC. Needs root.
[[nodiscard]] Result<Testbed> make_veth_testbed(const host::Root& root, unsigned connections);

/// Two NICs joined by a cable.
using NicPair = std::pair<std::string, std::string>;

/// Each NIC of a pair receives one connection from its partner, so there are twice as many connections as
/// pairs. The first NIC of each pair moves to one namespace, the second to another; both return with the end
/// of the testbed. Needs root.
[[nodiscard]] Result<Testbed> make_nic_testbed(const host::Root& root, const std::vector<NicPair>& pairs);

/// Moves what does the interrupt work of this path's NIC (NAPI threads or interrupts) to these CPUs.
[[nodiscard]] Result<void> place_interrupts(const host::Root& root, const Path& path, const CpuSet& cpus);

} // namespace affinityd::ttcp
