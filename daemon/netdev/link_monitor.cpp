// SPDX-License-Identifier: Apache-2.0
#include "netdev/link_monitor.hpp"

#include "host/netlink.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
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

std::optional<LinkEvent> parse_link(std::span<const std::byte> payload) {
    const auto info = take<ifinfomsg>(payload);
    if (!info || info->ifi_index <= 0) return std::nullopt;
    if (info->ifi_family != AF_UNSPEC) return std::nullopt; // AF_BRIDGE: a port's state, not the interface's
    return LinkEvent{static_cast<unsigned>(info->ifi_index),
                     host::Attributes(payload).text(IFLA_IFNAME).value_or("")};
}

std::optional<LinkEvent> parse_address(std::span<const std::byte> payload) {
    const auto info = take<ifaddrmsg>(payload);
    if (!info || info->ifa_index == 0) return std::nullopt;
    return LinkEvent{info->ifa_index, ""};
}

} // namespace

std::vector<LinkEvent> parse_route_messages(std::span<const std::byte> bytes) {
    std::vector<LinkEvent> events;
    for_each_message(bytes, [&](unsigned type, std::span<const std::byte> payload) {
        std::optional<LinkEvent> event;
        if (type == RTM_NEWLINK || type == RTM_DELLINK) event = parse_link(payload);
        if (type == RTM_NEWADDR || type == RTM_DELADDR) event = parse_address(payload);
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
        if (const auto ifindex = header.u32(ETHTOOL_A_HEADER_DEV_INDEX))
            events.push_back({*ifindex, header.text(ETHTOOL_A_HEADER_DEV_NAME).value_or("")});
    });
    return events;
}

bool is_cpu_uevent(std::string_view message) {
    using namespace std::string_view_literals;
    for (auto at = message.find('\0'); at < message.size(); at = message.find('\0', at + 1))
        if (message.substr(at + 1).starts_with("SUBSYSTEM=cpu\0"sv)) return true;
    return false;
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
            if (errno != ENOBUFS) return fail("cannot receive changes of the hardware", {}, errno);
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

} // namespace

Result<void> LinkMonitor::watch(nl_sock& socket) const {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(waiter_.get(), EPOLL_CTL_ADD, nl_socket_get_fd(&socket), &event) != 0)
        return fail("cannot watch a netlink socket", {}, errno);
    return {};
}

Result<LinkMonitor> LinkMonitor::open(int buffer) {
    LinkMonitor monitor;
    const std::array<std::pair<int, host::NetlinkSocket*>, 3> sockets{
        {{NETLINK_ROUTE, &monitor.route_},
         {NETLINK_GENERIC, &monitor.generic_},
         {NETLINK_KOBJECT_UEVENT, &monitor.uevents_}}};
    for (const auto& [protocol, socket] : sockets) {
        auto opened = host::open_netlink(protocol);
        if (!opened) return std::unexpected(opened.error());
        *socket = std::move(*opened);
    }
    if (auto done = monitor.subscribe(buffer); !done) return std::unexpected(done.error());
    return monitor;
}

Result<void> LinkMonitor::subscribe(int buffer) {
    waiter_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!waiter_) return fail("cannot make an epoll descriptor", {}, errno);
    family_ = genl_ctrl_resolve(generic_.get(), ETHTOOL_GENL_NAME);
    const int group =
        family_ < 0 ? -1
                    : genl_ctrl_resolve_grp(generic_.get(), ETHTOOL_GENL_NAME, ETHTOOL_MCGRP_MONITOR_NAME);
    if (group < 0) generic_.reset();
    constexpr int kernels_uevents = 1; // udev passes on to another group
    const std::array<std::pair<nl_sock*, int>, 5> groups{{{route_.get(), RTNLGRP_LINK},
                                                          {route_.get(), RTNLGRP_IPV4_IFADDR},
                                                          {route_.get(), RTNLGRP_IPV6_IFADDR},
                                                          {generic_.get(), group},
                                                          {uevents_.get(), kernels_uevents}}};
    for (const auto& [socket, number] : groups)
        if (const int code = socket == nullptr ? 0 : nl_socket_add_membership(socket, number); code < 0)
            return fail(std::string("cannot subscribe to changes of the hardware: ") + nl_geterror(code));
    for (auto* socket : {route_.get(), generic_.get(), uevents_.get()}) {
        if (socket == nullptr) continue;
        // A smaller queue only loses sooner, which is noticed.
        if (socket != uevents_.get()) nl_socket_set_buffer_size(socket, buffer, 0);
        if (auto watched = watch(*socket); !watched) return watched;
    }
    return {};
}

Result<LinkMonitor::Drained> LinkMonitor::drain() {
    Drained drained;
    const auto keep = [&](std::vector<LinkEvent> events) {
        std::ranges::move(events, std::back_inserter(drained.events));
    };
    const auto links =
        receive(nl_socket_get_fd(route_.get()), [&](auto bytes) { keep(parse_route_messages(bytes)); });
    if (!links) return std::unexpected(links.error());
    const auto channels = generic_
                              ? receive(nl_socket_get_fd(generic_.get()),
                                        [&](auto bytes) { keep(parse_ethtool_messages(bytes, family_)); })
                              : Result<bool>(true);
    if (!channels) return std::unexpected(channels.error());
    const auto uevents = receive(nl_socket_get_fd(uevents_.get()), [&](auto bytes) {
        const auto* first = reinterpret_cast<const char*>(bytes.data());
        drained.cpus = drained.cpus || is_cpu_uevent({first, bytes.size()});
    });
    if (!uevents) return std::unexpected(uevents.error());
    drained.lost = !*links || !*channels;
    drained.cpus = drained.cpus || !*uevents;
    return drained;
}

} // namespace affinityd::netdev
