// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "host/netlink.hpp"
#include "host/root.hpp"
#include "netdev/addresses.hpp"
#include "netdev/reader.hpp"
#include "netdev/ways.hpp"

#include <algorithm>
#include <map>

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/socket.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::netdev {

namespace {

constexpr int no_number = NETNSA_NSID_NOT_ASSIGNED;

/// The number that the daemon's namespace has for that of a process. `make`: gives it one.
Result<int> number_of(int pid, bool make) {
    auto socket = host::open_netlink(NETLINK_ROUTE); // the kernel acknowledges what it has answered
    if (!socket) return std::unexpected(socket.error());
    auto request = host::make_request(make ? RTM_NEWNSID : RTM_GETNSID, 0);
    if (!request) return std::unexpected(request.error());
    rtgenmsg head{AF_UNSPEC};
    if (nlmsg_append(request->get(), &head, sizeof head, NLMSG_ALIGNTO) < 0 ||
        nla_put_u32(request->get(), NETNSA_PID, static_cast<std::uint32_t>(pid)) < 0 ||
        (make && nla_put_s32(request->get(), NETNSA_NSID, no_number) < 0))
        return fail("cannot allocate a netlink message");
    int number = no_number;
    const auto take = [&](const nlmsghdr& answer) {
        auto* whole = const_cast<nlmsghdr*>(&answer);
        if (const auto* found = nlmsg_find_attr(whole, sizeof head, NETNSA_NSID)) number = nla_get_s32(found);
    };
    const auto asked = host::ask(**socket, **request, {[] {}, take});
    if (!asked) return std::unexpected(asked.error());
    return number;
}

Result<int> give_number(int pid) {
    auto number = number_of(pid, false);
    if (!number || *number != no_number) return number;
    if (const auto made = number_of(pid, true); !made) return made;
    return number_of(pid, false);
}

/// A link, and the number of the namespace of what it is on top of.
struct Told {
    Link link;
    std::optional<int> under_in;
};

/// No value: another message, or of another namespace, as a kernel before 4.15 answers.
std::optional<Told> parse_told(const nlmsghdr& head, std::optional<int> space) {
    auto* whole = const_cast<nlmsghdr*>(&head);
    if (head.nlmsg_type != RTM_NEWLINK || nlmsg_valid_hdr(whole, sizeof(ifinfomsg)) == 0) return std::nullopt;
    const auto* info = static_cast<const ifinfomsg*>(nlmsg_data(whole));
    const auto* first = reinterpret_cast<const std::byte*>(nlmsg_attrdata(whole, sizeof(ifinfomsg)));
    const host::Attributes attributes(
        {first, static_cast<std::size_t>(nlmsg_attrlen(whole, sizeof(ifinfomsg)))});
    const auto number = [&](int type) {
        const auto value = attributes.u32(type);
        return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
    };
    if (number(IFLA_TARGET_NETNSID) != space) return std::nullopt;
    return Told{{.ifindex = static_cast<unsigned>(info->ifi_index),
                 .name = attributes.text(IFLA_IFNAME).value_or(""),
                 .kind = attributes.nested(IFLA_LINKINFO).text(IFLA_INFO_KIND).value_or(""),
                 .bus = attributes.text(IFLA_PARENT_DEV_BUS_NAME).value_or(""),
                 .device = attributes.text(IFLA_PARENT_DEV_NAME).value_or(""),
                 .up = (info->ifi_flags & IFF_UP) != 0,
                 .master = attributes.u32(IFLA_MASTER).value_or(0),
                 .under = attributes.u32(IFLA_LINK).value_or(0),
                 .under_in = {}},
                number(IFLA_LINK_NETNSID)};
}

/// `space`: the number of another namespace. A list that changed in every attempt is as good as it came.
Result<std::vector<Told>> list_links(nl_sock& socket, std::optional<int> space) {
    auto request = host::make_request(RTM_GETLINK, NLM_F_DUMP);
    if (!request) return std::unexpected(request.error());
    const ifinfomsg wanted{};
    if (nlmsg_append(request->get(), const_cast<ifinfomsg*>(&wanted), sizeof wanted, NLMSG_ALIGNTO) < 0 ||
        nla_put_u32(request->get(), IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS) < 0 ||
        (space && nla_put_s32(request->get(), IFLA_TARGET_NETNSID, *space) < 0))
        return fail("cannot allocate a netlink message");
    std::vector<Told> links;
    const auto take = [&](const nlmsghdr& head) {
        if (auto told = parse_told(head, space)) links.push_back(std::move(*told));
    };
    const auto listed = host::ask(socket, **request, {[&] { links.clear(); }, take});
    if (!listed && listed.error().code != EAGAIN) return std::unexpected(listed.error());
    std::ranges::sort(links, {}, [](const Told& told) { return told.link.ifindex; });
    return links;
}

/// Which of the processes are in other network namespaces, and one member of each.
OtherSpaces find_members(const host::Root& root, std::span<const int> pids) {
    OtherSpaces found{.spaces = {{}}, .of_pid = {}, .members = {0}};
    const auto own = root.proc().link("self/ns/net");
    if (!own || !root.is_live()) return found;
    constexpr std::size_t most = 1024; // users make namespaces as they like
    std::map<std::string, std::size_t> known{{*own, 0}};
    for (const int pid : pids) {
        if (found.members.size() == most) break;
        const auto its = root.proc().link(std::to_string(pid) + "/ns/net");
        if (!its) continue;
        const auto [at, is_new] = known.try_emplace(*its, found.members.size());
        if (is_new) found.members.push_back(pid);
        if (at->second != 0) found.of_pid.emplace(pid, at->second);
    }
    return found;
}

} // namespace

Result<OtherSpaces> read_other_spaces(const host::Root& root, std::span<const int> pids) {
    auto found = find_members(root, pids);
    if (found.of_pid.empty()) return found;
    auto socket = host::open_netlink(NETLINK_ROUTE);
    if (!socket) return std::unexpected(socket.error());
    const int on = 1; // else the kernel overlooks which namespace is asked about (before 5.0 always)
    ::setsockopt(nl_socket_get_fd(socket->get()), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on);
    std::map<int, std::size_t> numbered;
    std::vector<std::vector<Told>> told(found.members.size());
    for (std::size_t space = 0; space < told.size(); ++space) {
        const auto number = space == 0 ? Result<int>(no_number) : give_number(found.members[space]);
        if (!number) return std::unexpected(number.error());
        if (space > 0 && *number == no_number) continue; // its process has ended
        if (space > 0) numbered.emplace(*number, space);
        auto links = list_links(**socket, space == 0 ? std::nullopt : std::optional(*number));
        if (!links) return std::unexpected(links.error());
        told[space] = std::move(*links);
    }
    // The daemon's own has a number only once a list had to name it.
    const int own_number = number_of(::getpid(), false).value_or(no_number);
    if (own_number != no_number) numbered.emplace(own_number, 0);
    found.spaces.resize(told.size());
    for (std::size_t space = 0; space < told.size(); ++space) {
        auto& links = found.spaces[space];
        for (auto& [link, under_in] : told[space]) {
            const auto other = under_in ? numbered.find(*under_in) : numbered.end();
            if (!under_in)
                link.under_in = space;
            else if (other != numbered.end())
                link.under_in = other->second;
            links.push_back(std::move(link));
        }
        const auto folder = space == 0 ? std::string() : std::to_string(found.members[space]) + "/";
        for (const auto names = default_routes(root.proc(), folder); auto& link : links)
            link.has_default_route = names.contains(link.name);
    }
    numbered.erase(own_number);
    auto read = read_addresses(**socket, std::nullopt, found.spaces[0]);
    for (auto at = numbered.begin(); read && at != numbered.end(); ++at)
        read = read_addresses(**socket, at->first, found.spaces[at->second]);
    if (!read && read.error().code == EAGAIN) return std::unexpected(read.error()); // else none is to be had
    found.ways.resize(found.spaces.size());
    for (std::size_t space = 1; space < found.spaces.size(); ++space)
        for (const auto& link : found.spaces[space])
            found.ways[space].push_back(has_packets(link) ? way_from(found.spaces, space, link.ifindex)
                                                          : Way{});
    return found;
}

} // namespace affinityd::netdev
