// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::netdev {

/// An interface of some network namespace, as netlink tells of it.
struct Link {
    unsigned ifindex = 0;
    std::string name;
    std::string kind;   ///< "veth", "bridge", "macvlan", ...; "": the driver of a device
    std::string bus{};  ///< of its device, "pci"
    std::string device; ///< its parent's name, "0000:41:02.1"; "": virtual
    bool up = false;
    unsigned master = 0; ///< the bridge, bond ... that it is a port of; 0: none
    unsigned under = 0;  ///< the other end of a veth, or the interface that this one is on top of; 0: none
    std::optional<std::size_t> under_in; ///< the namespace of that; no value: one that is not known
    std::vector<std::string> addresses{};
    bool has_default_route = false;
};

/// Network namespaces and their interfaces, ascending by index. The first is the daemon's own.
using Spaces = std::vector<std::vector<Link>>;

/// True: the link has packets of its own: an address, or a default route.
[[nodiscard]] inline bool has_packets(const Link& link) {
    return link.up && (!link.addresses.empty() || link.has_default_route);
}

/// The way of packets from an interface of a container to the daemon's namespace.
struct Way {
    /// Interfaces of the daemon's namespace that they arrive on; of one that was moved, the device's name.
    std::vector<std::string> nics{};
    std::vector<std::string> ends{}; ///< of pairs, in that namespace, that they go through
    /// Devices of interfaces that were moved into a container, in sysfs: "bus/pci/devices/0000:41:02.1".
    std::vector<std::string> moved{};
    std::string hops{}; ///< "eth0 → veth1 → br0 → eth1"
    std::string lost{}; ///< why it cannot be followed to its end; "": it can
};

/// Follows it: to the other end of a veth, through the bridge that this is a port of, or by default route,
/// and down to what an interface is on top of. Addresses do not count, so that rules that rewrite them
/// (published ports, services) do not matter.
[[nodiscard]] Way way_from(const Spaces& spaces, std::size_t space, unsigned ifindex);

/// The namespaces that some processes live in.
struct OtherSpaces {
    Spaces spaces;                               ///< the daemon's own first, also where there is no other
    std::unordered_map<int, std::size_t> of_pid; ///< those of processes that live in another one
    std::vector<std::vector<Way>> ways{}; ///< by namespace, from each interface that has packets of its own
    std::vector<int> members;             ///< by namespace: a process that lives there; 0: the daemon
};

/// Asks the kernel for the interfaces of the namespaces that these processes live in, if any is another one
/// than the daemon's. Not for the event loop: the kernel has one lock for all interfaces. Needs no right but
/// CAP_NET_ADMIN: each namespace gets a number in the daemon's own, as with ip-netns(8), and the kernel
/// answers for it. At most 1,024 namespaces are asked about; on a recording there are no others.
[[nodiscard]] Result<OtherSpaces> read_other_spaces(const host::Root& root, std::span<const int> pids);

} // namespace affinityd::netdev
