// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netdev/nic.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace affinityd::netdev {

/// True: the interface belongs to a device; else it is made of software (veth, tap, bond, bridge, VLAN ...).
/// A representor stands in for a guest's function: what it carries is not the host's.
[[nodiscard]] inline bool is_physical(const Nic& nic) { return !nic.device.empty() && !nic.is_representor; }

/// The host's end of a guest or container: a port of a bridge or the like that no device is behind (veth,
/// tap, a representor). Only their traffic goes here.
[[nodiscard]] inline bool is_foreign_port(const Nic& nic) {
    return !is_physical(nic) && nic.lower.empty() && (!nic.master.empty() || nic.is_representor);
}

/// True: the traffic goes through ports, and the queues are for show.
[[nodiscard]] inline bool takes_ports(const Nic& nic) {
    return !is_physical(nic) && (nic.driver == "bonding" || nic.driver == "bridge" || nic.driver == "team");
}

/// Which interfaces are below which: all that need to know it go this one way. The interfaces must outlive
/// it.
class Stacks {
  public:
    explicit Stacks(std::span<const Nic> nics);

    [[nodiscard]] const Nic* find(std::string_view name) const; ///< nullptr: none has that name
    /// The physical interfaces at the bottom of an interface's stack (a VLAN on a bond: the bond's ports), in
    /// the order of all; the interface itself, whatever it is, if it has no lower devices; a bond or
    /// bridge without ports has none. Each device is
    /// visited once, so that loops and diamonds in a hostile recording cost no more than a list. Lower
    /// devices that are not among these (in another network namespace) are left out, and so is what is not
    /// physical (a bridge's ports to guests and containers), but where nothing is: then it is what is no
    /// port.
    [[nodiscard]] std::vector<const Nic*> under(const Nic& nic) const;
    /// Names of physical interfaces that carry no traffic, because a bond uses another of its ports, or
    /// because they have no link while another port has.
    [[nodiscard]] std::set<std::string_view> spares() const;

  private:
    /// Places of interfaces directly below one, and of those of them that carry its traffic.
    struct Carriers {
        std::vector<std::size_t> ports, active;
    };
    [[nodiscard]] std::vector<const Nic*> walk(const Nic& from) const;
    [[nodiscard]] std::optional<Carriers> carriers(const Nic& upper) const;
    std::span<const Nic> nics_;
    std::unordered_map<std::string_view, std::size_t> by_name_;
    /// The interfaces under these lower devices: a bridge with a thousand ports may have a thousand VLANs on
    /// it.
    mutable std::map<std::vector<std::string>, std::vector<const Nic*>> known_;
};

} // namespace affinityd::netdev
