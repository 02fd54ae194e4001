// SPDX-License-Identifier: Apache-2.0
#include "netdev/generic_socket.hpp"

#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

namespace affinityd::netdev {

namespace {

constexpr std::size_t max_answers = 1U << 20; ///< more than any machine has queues

} // namespace

Result<GenericSocket> GenericSocket::open() {
    auto socket = host::open_netlink(NETLINK_GENERIC);
    if (!socket) return std::unexpected(socket.error());
    return GenericSocket(std::move(*socket));
}

Result<std::optional<int>> GenericSocket::family(const char* name) {
    const int number = genl_ctrl_resolve(socket_.get(), name);
    if (number >= 0) return number;
    if (number == -NLE_OBJ_NOTFOUND) return std::nullopt;
    return fail(std::string("cannot look up a generic netlink family: ") + nl_geterror(number), name);
}

Result<host::NetlinkMessage> GenericSocket::make(const Request& request) {
    auto message = host::make_request(request.family, 0);
    if (!message) return message;
    if (genlmsg_put(message->get(), NL_AUTO_PORT, NL_AUTO_SEQ, request.family, 0,
                    request.dump ? NLM_F_DUMP : 0, request.command, request.version) == nullptr)
        return fail("cannot allocate a netlink message");
    if (request.fill) request.fill(**message);
    return message;
}

Result<std::vector<GenericSocket::Answer>> GenericSocket::ask(const Request& request, int* code) {
    const auto message = make(request);
    if (!message) return std::unexpected(message.error());
    std::vector<Answer> answers;
    const auto take = [&](const nlmsghdr& head) {
        auto* whole = const_cast<nlmsghdr*>(&head); // libnl's readers take no const
        if (!genlmsg_valid_hdr(whole, 0) || answers.size() >= max_answers) return;
        auto* generic = static_cast<genlmsghdr*>(nlmsg_data(whole));
        const auto* first = reinterpret_cast<const std::byte*>(genlmsg_attrdata(generic, 0));
        answers.emplace_back(first, first + genlmsg_attrlen(generic, 0));
    };
    const auto end = [code](int refusal) {
        if (code != nullptr) *code = refusal;
    };
    const auto done = host::ask(*socket_, **message, {[&] { answers.clear(); }, take, end});
    if (!done) return std::unexpected(done.error());
    if (!*done) answers.clear();
    return answers;
}

} // namespace affinityd::netdev
