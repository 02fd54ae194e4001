// SPDX-License-Identifier: Apache-2.0
#include "inventory/socket_dump.hpp"

#include <memory>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

namespace affinityd::inventory {

namespace {

struct FreeSocket {
    void operator()(nl_sock* socket) const { nl_socket_free(socket); }
};

struct Dump {
    Protocol protocol;
    std::size_t end; ///< size at which the list is full
    SocketList* list;
};

int take(nl_msg* message, void* argument) {
    const auto& dump = *static_cast<Dump*>(argument);
    const nlmsghdr* header = nlmsg_hdr(message);
    if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) return NL_OK;
    const auto* data = static_cast<const std::byte*>(nlmsg_data(header));
    auto socket = parse_inet_diag({data, static_cast<std::size_t>(nlmsg_datalen(header))}, dump.protocol);
    if (!socket) return NL_OK;
    if (dump.list->sockets.size() >= dump.end) {
        dump.list->truncated = true;
        return NL_STOP;
    }
    dump.list->sockets.push_back(std::move(*socket));
    return NL_OK;
}

unsigned wanted_states(Protocol protocol, Wanted wanted) {
    // A UDP socket is "closed" without a peer and "established" with one.
    const unsigned listening = protocol == Protocol::tcp ? 1U << TCP_LISTEN : 1U << TCP_CLOSE;
    return wanted == Wanted::listeners ? listening : listening | 1U << TCP_ESTABLISHED;
}

} // namespace

bool dump_sockets(Protocol protocol, int family, Wanted wanted, std::size_t most, SocketList& list) {
    const std::unique_ptr<nl_sock, FreeSocket> socket(nl_socket_alloc());
    if (!socket || nl_connect(socket.get(), NETLINK_SOCK_DIAG) < 0) return false;
    inet_diag_req_v2 request{};
    request.sdiag_family = static_cast<__u8>(family);
    request.sdiag_protocol = protocol == Protocol::tcp ? IPPROTO_TCP : IPPROTO_UDP;
    request.idiag_states = wanted_states(protocol, wanted);
    if (wanted == Wanted::all_with_bytes && protocol == Protocol::tcp)
        request.idiag_ext = 1U << (INET_DIAG_INFO - 1);
    Dump dump{protocol, list.sockets.size() + most, &list};
    if (nl_socket_modify_cb(socket.get(), NL_CB_VALID, NL_CB_CUSTOM, take, &dump) < 0) return false;
    if (nl_send_simple(socket.get(), SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &request, sizeof request) < 0)
        return false;
    return nl_recvmsgs_default(socket.get()) >= 0;
}

} // namespace affinityd::inventory
