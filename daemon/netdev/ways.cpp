// SPDX-License-Identifier: Apache-2.0
#include "netdev/ways.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace affinityd::netdev {

namespace {

bool is_pair(const Link& link) { return link.kind == "veth" || link.kind == "netkit"; }
bool is_switch(const Link& link) { return link.kind == "bridge" || link.kind == "openvswitch"; }

/// Packets leave it again inside others, by the route of these.
bool is_routed(const Link& link) {
    constexpr std::array<std::string_view, 12> kinds{"dummy", "wireguard", "vxlan", "geneve", "gre", "gretap",
                                                     "ipip",  "sit",       "tun",   "ip6tnl", "vti", "xfrm"};
    return link.name == "lo" || std::ranges::find(kinds, link.kind) != kinds.end();
}

class Follower {
  public:
    explicit Follower(const Spaces& spaces) : spaces_(spaces) {}

    /// Packets for the interface come from below it.
    void descend(std::size_t space, const Link& link) {
        if (!visit(space, link)) return;
        const auto* under = find(link.under_in, link.under);
        if (link.kind == "bond" || link.kind == "team") {
            if (space == 0) return arrive(link);
            return each_port(space, link, [&](const Link& port) { descend(space, port); });
        }
        if (is_switch(link)) return cross(space, link);
        if (is_pair(link) && under != nullptr) return emerge(*link.under_in, *under);
        if (under != nullptr && (space != 0 || is_routed(link))) return descend(*link.under_in, *under);
        if (is_routed(link)) return route(space);
        if (space == 0) return arrive(link); // what is below it here, the machine knows
        if (!link.device.empty()) return arrive_at_device(link);
        if (link.under != 0)
            lose("the other end of " + link.name +
                 " is in a network namespace that no process under policy lives in");
        else
            lose("nothing is known to be below " + link.name);
    }

    Way take() { return std::move(way_); }

  private:
    /// They came in by this end of a pair: from its bridge, or from the host's own stack.
    void emerge(std::size_t space, const Link& end) {
        if (!visit(space, end)) return;
        if (space == 0) way_.ends.push_back(end.name);
        const auto* master = find(space, end.master);
        if (master == nullptr || !is_switch(*master))
            return route(space); // a routing domain (VRF) is no switch
        if (visit(space, *master)) cross(space, *master);
    }

    /// A switch has them from its ports that lead out. Without any, it has its traffic by the host's routes,
    /// or by a pair that leads to another switch.
    void cross(std::size_t space, const Link& bridge) {
        bool leads_out = false;
        each_port(space, bridge, [&](const Link& port) {
            const bool is_guest =
                is_pair(port) || port.kind == "tun" || (port.kind.empty() && port.device.empty());
            if (is_guest) return;
            leads_out = true;
            descend(space, port);
        });
        if (leads_out) return;
        const bool has_address = std::ranges::any_of(
            bridge.addresses, [](const std::string& address) { return !address.starts_with("fe80:"); });
        if (has_address || bridge.kind == "openvswitch") return route(space);
        each_port(space, bridge, [&](const Link& port) {
            const auto* other = port.under_in == space && is_pair(port) ? find(space, port.under) : nullptr;
            if (other == nullptr || other->master == bridge.ifindex) return;
            leads_out = true;
            emerge(space, *other);
        });
        if (!leads_out) lose("no port of " + bridge.name + " leads out, and it has no address");
    }

    void route(std::size_t space) {
        bool has_route = false;
        for (const auto& link : spaces_[space])
            if (link.has_default_route && link.up) {
                has_route = true;
                descend(space, link);
            }
        if (!has_route) lose("there is no default route");
    }

    void arrive(const Link& link) {
        if (std::ranges::find(way_.nics, link.name) == way_.nics.end()) way_.nics.push_back(link.name);
    }
    /// The container has a device of its own, whose interrupts are the machine's.
    void arrive_at_device(const Link& link) {
        way_.hops += " → " + link.device;
        way_.nics.push_back(link.device);
        way_.moved.push_back("bus/" + link.bus + "/devices/" + link.device);
    }
    void lose(std::string why) {
        if (way_.lost.empty()) way_.lost = std::move(why);
    }
    /// False: it was there before, so that a ring of pairs ends.
    bool visit(std::size_t space, const Link& link) {
        if (!seen_.emplace(space, link.ifindex).second) return false;
        way_.hops += (way_.hops.empty() ? "" : " → ") + link.name;
        return true;
    }
    [[nodiscard]] const Link* find(std::optional<std::size_t> space, unsigned ifindex) const {
        if (!space || ifindex == 0 || *space >= spaces_.size()) return nullptr;
        const auto& links = spaces_[*space];
        const auto at = std::ranges::lower_bound(links, ifindex, {}, &Link::ifindex);
        return at != links.end() && at->ifindex == ifindex ? &*at : nullptr;
    }
    void each_port(std::size_t space, const Link& upper, const auto& take) const {
        for (const auto& link : spaces_[space])
            if (link.master == upper.ifindex) take(link);
    }

    const Spaces& spaces_;
    std::set<std::pair<std::size_t, unsigned>> seen_;
    Way way_;
};

} // namespace

Way way_from(const Spaces& spaces, std::size_t space, unsigned ifindex) {
    Follower follower(spaces);
    for (const auto& link : spaces[space])
        if (link.ifindex == ifindex) follower.descend(space, link);
    auto way = follower.take();
    if (way.nics.empty() && way.lost.empty()) way.lost = "it ends without a NIC";
    return way;
}

} // namespace affinityd::netdev
