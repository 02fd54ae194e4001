// SPDX-License-Identifier: Apache-2.0
#include "netdev/link_event.hpp"

#include "host/attributes.hpp"

#include <algorithm>
#include <cstring>

#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

namespace affinityd::netdev {

namespace {

/// Copies a fixed header off the front; no value if there are too few bytes.
template <class Header>
std::optional<Header> take(std::span<const std::byte>& bytes) {
    constexpr std::size_t aligned = (sizeof(Header) + 3U) & ~std::size_t{3};
    if (bytes.size() < sizeof(Header)) return std::nullopt;
    Header header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    bytes = bytes.subspan(std::min(aligned, bytes.size()));
    return header;
}

/// Calls `use(type, payload)` for each whole message.
template <class Use>
void for_each_message(std::span<const std::byte> bytes, Use use) {
    while (bytes.size() >= sizeof(nlmsghdr)) {
        nlmsghdr head{};
        std::memcpy(&head, bytes.data(), sizeof head);
        if (head.nlmsg_len < sizeof head || head.nlmsg_len > bytes.size()) return;
        use(head.nlmsg_type, bytes.subspan(sizeof head, head.nlmsg_len - sizeof head));
        const std::size_t aligned = (std::size_t{head.nlmsg_len} + 3U) & ~std::size_t{3};
        bytes = bytes.subspan(std::min(aligned, bytes.size()));
    }
}

std::optional<LinkEvent> parse_link(std::span<const std::byte> payload, bool gone) {
    const auto info = take<ifinfomsg>(payload);
    if (!info || info->ifi_index <= 0) return std::nullopt;
    if (info->ifi_family != AF_UNSPEC) return std::nullopt; // AF_BRIDGE: a port's state, not the interface's
    LinkEvent event;
    event.ifindex = static_cast<unsigned>(info->ifi_index);
    event.name = host::Attributes(payload).text(IFLA_IFNAME).value_or("");
    event.up = !gone && (info->ifi_flags & IFF_UP) != 0;
    event.gone = gone;
    return event;
}

std::optional<LinkEvent> parse_address(std::span<const std::byte> payload, bool gone) {
    const auto info = take<ifaddrmsg>(payload);
    if (!info || info->ifa_index == 0) return std::nullopt;
    LinkEvent event;
    event.what = LinkEvent::What::address;
    event.ifindex = info->ifa_index;
    event.gone = gone;
    return event;
}

} // namespace

std::vector<LinkEvent> parse_route_messages(std::span<const std::byte> bytes) {
    std::vector<LinkEvent> events;
    for_each_message(bytes, [&](unsigned type, std::span<const std::byte> payload) {
        std::optional<LinkEvent> event;
        if (type == RTM_NEWLINK || type == RTM_DELLINK) event = parse_link(payload, type == RTM_DELLINK);
        if (type == RTM_NEWADDR || type == RTM_DELADDR) event = parse_address(payload, type == RTM_DELADDR);
        if (event) events.push_back(std::move(*event));
    });
    return events;
}

std::vector<LinkEvent> parse_ethtool_messages(std::span<const std::byte> bytes, int family) {
    std::vector<LinkEvent> events;
    for_each_message(bytes, [&](unsigned type, std::span<const std::byte> payload) {
        if (static_cast<int>(type) != family) return;
        const auto generic = take<genlmsghdr>(payload);
        if (!generic || (generic->cmd != ETHTOOL_MSG_CHANNELS_NTF && generic->cmd != ETHTOOL_MSG_RINGS_NTF))
            return;
        const auto header = host::Attributes(payload).nested(1); // ETHTOOL_A_*_HEADER is 1 in every message
        const auto ifindex = header.u32(ETHTOOL_A_HEADER_DEV_INDEX);
        if (!ifindex) return;
        LinkEvent event;
        event.what = LinkEvent::What::channels;
        event.ifindex = *ifindex;
        event.name = header.text(ETHTOOL_A_HEADER_DEV_NAME).value_or("");
        events.push_back(std::move(event));
    });
    return events;
}

} // namespace affinityd::netdev
