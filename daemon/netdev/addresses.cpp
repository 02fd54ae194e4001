// SPDX-License-Identifier: Apache-2.0
#include "netdev/addresses.hpp"

#include "host/attributes.hpp"
#include "host/netlink.hpp"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/socket.h>

namespace affinityd::netdev {

namespace {

struct Address {
    unsigned ifindex = 0;
    std::string text; ///< "" if it is neither IPv4 nor IPv6
};

Address parse_address(const nlmsghdr& head) {
    auto* whole = const_cast<nlmsghdr*>(&head); // libnl's readers take no const
    if (head.nlmsg_type != RTM_NEWADDR || nlmsg_valid_hdr(whole, sizeof(ifaddrmsg)) == 0) return {};
    const auto* info = static_cast<const ifaddrmsg*>(nlmsg_data(whole));
    const auto* first = reinterpret_cast<const std::byte*>(nlmsg_attrdata(whole, sizeof(ifaddrmsg)));
    const host::Attributes attributes(
        {first, static_cast<std::size_t>(nlmsg_attrlen(whole, sizeof(ifaddrmsg)))});
    auto bytes = attributes.find(IFA_LOCAL); // on a point-to-point link IFA_ADDRESS is the peer's
    if (!bytes) bytes = attributes.find(IFA_ADDRESS);
    const std::size_t wanted = info->ifa_family == AF_INET ? 4 : info->ifa_family == AF_INET6 ? 16 : 0;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (!bytes || wanted == 0 || bytes->size() != wanted ||
        ::inet_ntop(info->ifa_family, bytes->data(), text.data(), text.size()) == nullptr)
        return {};
    return {info->ifa_index, text.data()};
}

} // namespace

Result<void> read_addresses(std::span<Nic> nics) {
    if (nics.empty()) return {};
    auto socket = host::open_netlink(NETLINK_ROUTE);
    if (!socket) return std::unexpected(socket.error());
    auto request = host::make_request(RTM_GETADDR, NLM_F_DUMP);
    if (!request) return std::unexpected(request.error());
    ifaddrmsg wanted{};
    if (nics.size() == 1) {
        // The index counts only with strict checking (Linux 5.0 on); an older kernel lists all.
        const int on = 1;
        ::setsockopt(nl_socket_get_fd(socket->get()), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on);
        wanted.ifa_index = nics.front().ifindex;
    }
    if (nlmsg_append(request->get(), &wanted, sizeof wanted, NLMSG_ALIGNTO) < 0)
        return fail("cannot allocate a netlink message");
    const auto forget = [&] {
        for (auto& nic : nics)
            nic.addresses.clear();
    };
    const auto take = [&](const nlmsghdr& head) {
        auto address = parse_address(head);
        auto* nic = address.text.empty() ? nullptr : find_nic(nics, address.ifindex);
        if (nic != nullptr) nic->addresses.push_back(std::move(address.text));
    };
    const auto listed = host::ask(**socket, **request, {forget, take});
    if (!listed) return std::unexpected(listed.error());
    if (!*listed) return fail("the kernel refuses to list addresses");
    for (auto& nic : nics)
        std::ranges::sort(nic.addresses);
    return {};
}

} // namespace affinityd::netdev
