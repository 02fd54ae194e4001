// SPDX-License-Identifier: Apache-2.0
#include "netdev/addresses.hpp"

#include "host/netlink.hpp"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/socket.h>

namespace affinityd::netdev {

namespace {

struct Address {
    unsigned ifindex = 0;
    std::string text; ///< "" if it is neither IPv4 nor IPv6
    std::optional<int> space{};
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
    const auto space = attributes.u32(IFA_TARGET_NETNSID);
    return {info->ifa_index, text.data(), space ? std::optional(static_cast<int>(*space)) : std::nullopt};
}

/// The names that a link has beside its first one.
struct OtherNames {
    unsigned ifindex = 0;
    std::vector<std::string> names;
};

OtherNames parse_other_names(const nlmsghdr& head) {
    auto* whole = const_cast<nlmsghdr*>(&head);
    if (head.nlmsg_type != RTM_NEWLINK || nlmsg_valid_hdr(whole, sizeof(ifinfomsg)) == 0) return {};
    const auto* info = static_cast<const ifinfomsg*>(nlmsg_data(whole));
    OtherNames found{static_cast<unsigned>(info->ifi_index), {}};
    auto* list = nlmsg_find_attr(whole, sizeof(ifinfomsg), IFLA_PROP_LIST);
    if (list == nullptr) return found;
    int rest = nla_len(list);
    for (auto* name = static_cast<nlattr*>(nla_data(list)); nla_ok(name, rest) != 0;
         name = nla_next(name, &rest))
        if (nla_type(name) == IFLA_ALT_IFNAME && nla_len(name) > 1)
            found.names.emplace_back(static_cast<const char*>(nla_data(name)),
                                     static_cast<std::size_t>(nla_len(name)) - 1);
    return found;
}

/// `links`: with ifindex, ascending, and addresses.
template <class One>
Result<void> list_addresses(nl_sock& socket, nl_msg& request, std::optional<int> space,
                            std::span<One> links) {
    const auto forget = [&] {
        for (auto& link : links)
            link.addresses.clear();
    };
    const auto take = [&](const nlmsghdr& head) {
        auto address = parse_address(head);
        if (address.text.empty() || address.space != space) return;
        const auto at = std::ranges::lower_bound(links, address.ifindex, {}, &One::ifindex);
        if (at != links.end() && at->ifindex == address.ifindex)
            at->addresses.push_back(std::move(address.text));
    };
    const auto listed = host::ask(socket, request, {forget, take});
    if (!listed) return std::unexpected(listed.error());
    if (!*listed) return fail("the kernel refuses to list addresses");
    for (auto& link : links)
        std::ranges::sort(link.addresses);
    return {};
}

} // namespace

Result<void> read_other_names(std::span<Nic> nics) {
    if (nics.empty()) return {};
    auto socket = host::open_netlink(NETLINK_ROUTE);
    if (!socket) return std::unexpected(socket.error());
    const bool is_one = nics.size() == 1 && nics.front().ifindex != 0;
    auto request = host::make_request(RTM_GETLINK, is_one ? 0 : NLM_F_DUMP);
    if (!request) return std::unexpected(request.error());
    ifinfomsg wanted{};
    if (is_one) wanted.ifi_index = static_cast<int>(nics.front().ifindex);
    if (nlmsg_append(request->get(), &wanted, sizeof wanted, NLMSG_ALIGNTO) < 0 ||
        nla_put_u32(request->get(), IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS) < 0)
        return fail("cannot allocate a netlink message");
    const auto forget = [&] {
        for (auto& nic : nics)
            nic.other_names.clear();
    };
    const auto take = [&](const nlmsghdr& head) {
        auto found = parse_other_names(head);
        if (auto* nic = find_nic(nics, found.ifindex)) nic->other_names = std::move(found.names);
    };
    const auto listed = host::ask(**socket, **request, {forget, take});
    if (!listed && listed.error().code != EAGAIN) return std::unexpected(listed.error());
    return {};
}

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
    return list_addresses(**socket, **request, std::nullopt, nics);
}

Result<void> read_addresses(nl_sock& socket, std::optional<int> space, std::vector<Link>& links) {
    auto request = host::make_request(RTM_GETADDR, NLM_F_DUMP);
    if (!request) return std::unexpected(request.error());
    ifaddrmsg wanted{};
    if (nlmsg_append(request->get(), &wanted, sizeof wanted, NLMSG_ALIGNTO) < 0 ||
        (space && nla_put_s32(request->get(), IFA_TARGET_NETNSID, *space) < 0))
        return fail("cannot allocate a netlink message");
    return list_addresses(socket, **request, space, std::span(links));
}

} // namespace affinityd::netdev
