// SPDX-License-Identifier: Apache-2.0
// The way of packets through made-up namespaces: 0 is the daemon's, 1 a container's.
#include "netdev/ways.hpp"

#include <gtest/gtest.h>

namespace affinityd::netdev {
namespace {

using Names = std::vector<std::string>;

Link nic(unsigned index, const std::string& name, unsigned master = 0) {
    return {.ifindex = index,
            .name = name,
            .kind = "",
            .bus = "pci",
            .device = "0000:41:00.0",
            .up = true,
            .master = master};
}
Link made(unsigned index, const std::string& name, const std::string& kind, unsigned master = 0) {
    return {.ifindex = index, .name = name, .kind = kind, .device = "", .up = true, .master = master};
}
Link on(Link link, std::optional<std::size_t> space, unsigned under) {
    link.under_in = space;
    link.under = under;
    return link;
}
Link with(Link link, const std::string& address) {
    link.addresses = {address};
    return link;
}
Link by_default(Link link) {
    link.has_default_route = true;
    return link;
}

/// A container's eth0, number 2, whose other end is the host's number 3.
Spaces pair(std::vector<Link> host) {
    return {std::move(host), {made(1, "lo", ""), on(made(2, "eth0", "veth"), 0, 3)}};
}
Link pod(unsigned master = 0) { return on(made(3, "pod0", "veth", master), 1, 2); }

struct Case {
    const char* what;
    Spaces spaces;
    Names nics;
    const char* hops;
    bool is_lost = false;
};

TEST(Ways, LeadFromAContainerToTheNic) {
    const auto other = on(made(6, "pod1", "veth", 4), std::nullopt, 2);
    const std::vector<Case> cases{
        {"a bridge with a NIC",
         pair({nic(2, "eth1", 4), pod(4), made(4, "br0", "bridge"), other}),
         {"eth1"},
         "eth0 → pod0 → br0 → eth1"},
        {"a VLAN on a bond under a bridge",
         pair({made(2, "bond0.7", "vlan", 4), pod(4), made(4, "br0", "bridge")}),
         {"bond0.7"},
         "eth0 → pod0 → br0 → bond0.7"},
        {"a bridge of containers only, by the host's route",
         pair({by_default(nic(2, "eth1")), pod(4), with(made(4, "docker0", "bridge"), "172.17.0.1"), other}),
         {"eth1"},
         "eth0 → pod0 → docker0 → eth1"},
        {"a route over a bridge that has the NIC",
         pair({nic(2, "eth1", 5), pod(), by_default(made(5, "br1", "bridge"))}),
         {"eth1"},
         "eth0 → pod0 → br1 → eth1"},
        {"no bridge", pair({by_default(nic(2, "eth1")), pod()}), {"eth1"}, "eth0 → pod0 → eth1"},
        {"a switch of Open vSwitch",
         pair({nic(2, "eth1", 4), pod(4), made(4, "ovs-system", "openvswitch")}),
         {"eth1"},
         "eth0 → pod0 → ovs-system → eth1"},
        {"a pair from one bridge to the next",
         pair({nic(2, "eth1", 8), pod(4), made(4, "br0", "bridge"), on(made(5, "a", "veth", 4), 0, 6),
               on(made(6, "b", "veth", 8), 0, 5), made(8, "br1", "bridge")}),
         {"eth1"},
         "eth0 → pod0 → br0 → b → br1 → eth1"},
        {"a routing domain",
         pair({by_default(nic(2, "eth1")), pod(4), made(4, "vrf0", "vrf")}),
         {"eth1"},
         "eth0 → pod0 → eth1"},
        {"an interface on top of a NIC",
         {{nic(2, "eth1")}, {made(1, "lo", ""), on(made(2, "eth0", "macvlan"), 0, 2)}},
         {"eth1"},
         "eth0 → eth1"},
        {"one on top of a bond",
         {{made(2, "bond0", "bond")}, {made(1, "lo", ""), on(made(2, "eth0", "ipvlan"), 0, 2)}},
         {"bond0"},
         "eth0 → bond0"},
        {"a tunnel in the container, by its route",
         {{by_default(nic(2, "eth1")), on(made(3, "pod0", "veth"), 1, 3)},
          {made(1, "lo", ""), made(2, "wg0", "wireguard"), by_default(on(made(3, "eth0", "veth"), 0, 3))}},
         {"eth1"},
         "wg0 → eth0 → pod0 → eth1"},
        {"a VLAN on the container's own pair",
         {{by_default(nic(2, "eth1")), on(made(3, "pod0", "veth"), 1, 3)},
          {made(1, "lo", ""), on(made(2, "eth0.5", "vlan"), 1, 3), on(made(3, "eth0", "veth"), 0, 3)}},
         {"eth1"},
         "eth0.5 → eth0 → pod0 → eth1"},
        {"a container in a container",
         {{nic(2, "eth1", 4), on(made(3, "pod0", "veth", 4), 2, 2), made(4, "br0", "bridge")},
          {made(1, "lo", ""), on(made(2, "eth0", "veth"), 2, 7)},
          {by_default(on(made(2, "eth0", "veth"), 0, 3)), on(made(7, "in0", "veth"), 1, 2)}},
         {"eth1"},
         "eth0 → in0 → eth0 → pod0 → br0 → eth1"},
        {"the daemon's own NIC is the end of a pair",
         pair({by_default(on(made(2, "eth0", "veth"), std::nullopt, 9)), pod()}),
         {"eth0"},
         "eth0 → pod0 → eth0"},
        {"a bridge that leads nowhere",
         pair({pod(4), with(made(4, "br0", "bridge"), "fe80::1"), other}),
         {},
         "eth0 → pod0 → br0",
         true},
        {"no route", pair({nic(2, "eth1"), pod()}), {}, "eth0 → pod0", true},
        {"a pair to an unknown namespace",
         {{nic(2, "eth1")}, {made(1, "lo", ""), on(made(2, "eth0", "veth"), {}, 9)}},
         {},
         "eth0",
         true},
        {"a NIC of its own",
         {{}, {made(1, "lo", ""), nic(2, "eth0")}},
         {"0000:41:00.0"},
         "eth0 → 0000:41:00.0"},
        {"a bond of its own NICs",
         {{}, {made(1, "lo", ""), made(2, "bond0", "bond"), nic(3, "eth0", 2)}},
         {"0000:41:00.0"},
         "bond0 → eth0 → 0000:41:00.0"},
        {"a ring of pairs",
         pair({pod(4), made(4, "br0", "bridge"), on(made(5, "a", "veth", 4), 0, 6),
               on(made(6, "b", "veth", 8), 0, 5), made(8, "br1", "bridge"),
               on(made(9, "c", "veth", 8), 0, 10), on(made(10, "d", "veth", 4), 0, 9)}),
         {},
         "eth0 → pod0 → br0 → b → br1 → a → d → c",
         true},
    };
    for (const auto& [what, spaces, nics, hops, is_lost] : cases) {
        const auto way = way_from(spaces, 1, 2);
        EXPECT_EQ(way.nics, nics) << what;
        EXPECT_EQ(way.hops, hops) << what;
        EXPECT_EQ(!way.lost.empty(), is_lost) << what << ": " << way.lost;
    }
}

} // namespace
} // namespace affinityd::netdev
