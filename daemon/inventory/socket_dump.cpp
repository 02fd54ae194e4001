// SPDX-License-Identifier: Apache-2.0
#include "inventory/socket_dump.hpp"

#include <cerrno>
#include <cstdlib>
#include <memory>

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

namespace affinityd::inventory {

namespace {

constexpr std::size_t most_ranges = 64; // the kernel runs the program for each socket

struct Free {
    void operator()(unsigned char* bytes) const { std::free(bytes); }
};

unsigned wanted_states(Protocol protocol, Wanted wanted) {
    // A UDP socket is "closed" without a peer and "established" with one.
    const unsigned listening = protocol == Protocol::tcp ? 1U << TCP_LISTEN : 1U << TCP_CLOSE;
    return wanted == Wanted::listeners ? listening : listening | 1U << TCP_ESTABLISHED;
}

} // namespace

Result<SocketDump> SocketDump::open(Protocol protocol, int family, Wanted wanted, const PortRanges& ports) {
    auto socket = host::open_netlink(NETLINK_SOCK_DIAG);
    if (!socket) return std::unexpected(socket.error());
    auto message = host::make_request(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP);
    if (!message) return std::unexpected(message.error());
    inet_diag_req_v2 request{};
    request.sdiag_family = static_cast<__u8>(family);
    request.sdiag_protocol = protocol == Protocol::tcp ? IPPROTO_TCP : IPPROTO_UDP;
    request.idiag_states = wanted_states(protocol, wanted);
    const auto filter = listener_filter(few_ranges(ports, most_ranges));
    int status = nlmsg_append(message->get(), &request, sizeof request, NLMSG_ALIGNTO);
    if (status >= 0 && !filter.empty())
        status =
            nla_put(message->get(), INET_DIAG_REQ_BYTECODE, static_cast<int>(filter.size()), filter.data());
    if (status >= 0) status = nl_send_auto(socket->get(), message->get());
    if (status < 0) return fail("cannot ask for the list of sockets");
    return SocketDump(std::move(*socket), protocol);
}

Result<SocketDump::Step> SocketDump::next(const std::function<void(const LocalSocket&)>& take) {
    unsigned char* raw = nullptr;
    sockaddr_nl sender{};
    const int size = nl_recv(socket_.get(), &sender, &raw, nullptr);
    const std::unique_ptr<unsigned char, Free> bytes(raw);
    if (size <= 0) return fail(std::string("cannot receive the list of sockets: ") + nl_geterror(size));
    if (sender.nl_pid != 0) return Step::more; // only the kernel is believed
    return read({raw, static_cast<std::size_t>(size)}, protocol_, is_interrupted_, take);
}

SocketDump::Step SocketDump::read(std::span<unsigned char> datagram, Protocol protocol, bool& is_interrupted,
                                  const std::function<void(const LocalSocket&)>& take) {
    int left = static_cast<int>(datagram.size());
    for (auto* head = reinterpret_cast<nlmsghdr*>(datagram.data()); nlmsg_ok(head, left) != 0;
         head = nlmsg_next(head, &left)) {
        is_interrupted = is_interrupted || (head->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
        if (head->nlmsg_type == NLMSG_ERROR) return Step::refused;
        if (head->nlmsg_type == NLMSG_DONE) return is_interrupted ? Step::interrupted : Step::end;
        if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY) continue;
        const auto* data = static_cast<const std::byte*>(nlmsg_data(head));
        const auto size = static_cast<std::size_t>(nlmsg_datalen(head));
        if (const auto socket = parse_inet_diag({data, size}, protocol)) take(*socket);
    }
    return Step::more;
}

} // namespace affinityd::inventory
