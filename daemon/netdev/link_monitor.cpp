// SPDX-License-Identifier: Apache-2.0
#include "netdev/link_monitor.hpp"

#include "host/netlink.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/epoll.h>
#include <sys/socket.h>

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

namespace {

constexpr unsigned max_messages =
    4096; ///< per call of drain: a flood must not keep the loop from its other work

/// Receives what is there and hands each datagram to `use`. False: the kernel lost messages.
template <class Use>
Result<bool> receive(int fd, Use use) {
    std::array<std::byte, 65536> buffer; // NOLINT: filled by recvfrom
    bool complete = true;
    for (unsigned count = 0; count < max_messages; ++count) {
        sockaddr_nl sender{};
        socklen_t length = sizeof sender;
        const auto got = ::recvfrom(fd, buffer.data(), buffer.size(), MSG_DONTWAIT | MSG_TRUNC,
                                    reinterpret_cast<sockaddr*>(&sender), &length);
        if (got < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) break;
            if (errno != ENOBUFS) return fail("cannot receive link events", {}, errno);
            complete = false;
            continue;
        }
        if (sender.nl_pid != 0) continue; // only the kernel is believed
        if (static_cast<std::size_t>(got) > buffer.size())
            complete = false;
        else
            use(std::span<const std::byte>(buffer.data(), static_cast<std::size_t>(got)));
    }
    return complete;
}

int watch(int epoll, int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

} // namespace

Result<LinkMonitor> LinkMonitor::open(int buffer) {
    auto opened = host::open_netlink(NETLINK_ROUTE);
    if (!opened) return std::unexpected(opened.error());
    auto opened_generic = host::open_netlink(NETLINK_GENERIC);
    if (!opened_generic) return std::unexpected(opened_generic.error());
    auto& route = *opened;
    auto& generic = *opened_generic;
    host::Fd waiter(::epoll_create1(EPOLL_CLOEXEC));
    if (!waiter) return fail("cannot make an epoll descriptor", {}, errno);
    nl_socket_set_buffer_size(route.get(), buffer, 0); // a smaller queue only loses sooner, which is noticed
    for (const int group : {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR})
        if (const int code = nl_socket_add_membership(route.get(), group); code < 0)
            return fail(std::string("cannot subscribe to link events: ") + nl_geterror(code));
    if (const int code = watch(waiter.get(), nl_socket_get_fd(route.get())); code != 0)
        return fail("cannot watch rtnetlink", {}, code);
    const int family = genl_ctrl_resolve(generic.get(), ETHTOOL_GENL_NAME);
    const int group =
        family < 0 ? -1 : genl_ctrl_resolve_grp(generic.get(), ETHTOOL_GENL_NAME, ETHTOOL_MCGRP_MONITOR_NAME);
    if (group < 0) return LinkMonitor(std::move(route), nullptr, -1, std::move(waiter));
    nl_socket_set_buffer_size(generic.get(), buffer, 0);
    if (const int code = nl_socket_add_membership(generic.get(), group); code < 0)
        return fail(std::string("cannot subscribe to channel changes: ") + nl_geterror(code));
    if (const int code = watch(waiter.get(), nl_socket_get_fd(generic.get())); code != 0)
        return fail("cannot watch generic netlink", {}, code);
    return LinkMonitor(std::move(route), std::move(generic), family, std::move(waiter));
}

Result<LinkMonitor::Drained> LinkMonitor::drain() {
    Drained drained;
    const auto keep = [&](std::vector<LinkEvent> events) {
        std::ranges::move(events, std::back_inserter(drained.events));
    };
    const auto route =
        receive(nl_socket_get_fd(route_.get()), [&](auto bytes) { keep(parse_route_messages(bytes)); });
    if (!route) return std::unexpected(route.error());
    drained.lost = !*route;
    if (!generic_) return drained;
    const auto generic = receive(nl_socket_get_fd(generic_.get()),
                                 [&](auto bytes) { keep(parse_ethtool_messages(bytes, family_)); });
    if (!generic) return std::unexpected(generic.error());
    drained.lost = drained.lost || !*generic;
    return drained;
}

} // namespace affinityd::netdev
