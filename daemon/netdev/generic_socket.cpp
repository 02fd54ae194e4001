// SPDX-License-Identifier: Apache-2.0
#include "netdev/generic_socket.hpp"

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

namespace affinityd::netdev {

namespace {

using Answers = std::vector<std::vector<std::byte>>;

constexpr std::size_t max_answers = 1U << 20; ///< more than any machine has queues

struct FreeMessage {
    void operator()(nl_msg* message) const { nlmsg_free(message); }
};

int collect(nl_msg* message, void* argument) {
    auto& answers = *static_cast<Answers*>(argument);
    nlmsghdr* head = nlmsg_hdr(message);
    if (nlmsg_datalen(head) < static_cast<int>(GENL_HDRLEN) || answers.size() >= max_answers) return NL_OK;
    auto* generic = static_cast<genlmsghdr*>(nlmsg_data(head));
    const auto* first = reinterpret_cast<const std::byte*>(genlmsg_attrdata(generic, 0));
    answers.emplace_back(first, first + genlmsg_attrlen(generic, 0));
    return NL_OK;
}

} // namespace

void GenericSocket::Release::operator()(nl_sock* socket) const { nl_socket_free(socket); }

Result<GenericSocket> GenericSocket::open() {
    std::unique_ptr<nl_sock, Release> socket(nl_socket_alloc());
    if (!socket) return fail("cannot allocate a netlink socket");
    if (const int code = genl_connect(socket.get()); code < 0)
        return fail(std::string("cannot connect to generic netlink: ") + nl_geterror(code));
    return GenericSocket(std::move(socket));
}

std::optional<int> GenericSocket::family(const char* name) {
    const int number = genl_ctrl_resolve(socket_.get(), name);
    if (number < 0) return std::nullopt;
    return number;
}

std::vector<std::vector<std::byte>> GenericSocket::dump(int family, std::uint8_t command,
                                                        std::uint8_t version) {
    const std::unique_ptr<nl_msg, FreeMessage> message(nlmsg_alloc());
    if (!message || genlmsg_put(message.get(), NL_AUTO_PORT, NL_AUTO_SEQ, family, 0, NLM_F_DUMP, command,
                                version) == nullptr)
        return {};
    Answers answers;
    nl_socket_modify_cb(socket_.get(), NL_CB_VALID, NL_CB_CUSTOM, collect, &answers);
    if (nl_send_auto(socket_.get(), message.get()) < 0 || nl_recvmsgs_default(socket_.get()) < 0) return {};
    return answers;
}

} // namespace affinityd::netdev
