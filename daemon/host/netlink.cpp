// SPDX-License-Identifier: Apache-2.0
#include "host/netlink.hpp"

#include <cerrno>
#include <climits>
#include <cstring>

#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/handlers.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

namespace affinityd::host {

namespace {

std::unexpected<Error> netlink_fault(std::string what, int code, int number = 0) {
    return fail(std::move(what) + ": " + nl_geterror(code), {}, number);
}

int hand_on(nl_msg* message, void* argument) {
    static_cast<const NetlinkAnswers*>(argument)->take(*nlmsg_hdr(message));
    return NL_OK;
}

/// The kernel's own "no", as against a socket that does not work.
int note_refusal(sockaddr_nl*, nlmsgerr* answer, void* argument) {
    *static_cast<bool*>(argument) = true;
    return -nl_syserr2nlerr(answer->error);
}

Result<bool> attempt(nl_sock& socket, nl_msg& request, const NetlinkAnswers& answers, bool& is_refused) {
    for (int count = 0; count < most_attempts; ++count) {
        answers.begin();
        is_refused = false;
        nlmsg_hdr(&request)->nlmsg_seq = NL_AUTO_SEQ; // answers to an earlier attempt must not count
        if (const int code = nl_send_auto(&socket, &request); code < 0)
            return netlink_fault("cannot send a netlink request", code);
        const int code = nl_recvmsgs_default(&socket);
        if (is_refused) return false;
        if (code == -NLE_DUMP_INTR) continue;
        if (code < 0) return netlink_fault("cannot receive netlink answers", code);
        return true;
    }
    return fail("the kernel's list changed in every attempt to read it", {}, EAGAIN);
}

} // namespace

void NetlinkRelease::operator()(nl_sock* socket) const { nl_socket_free(socket); }
void NetlinkRelease::operator()(nl_msg* message) const { nlmsg_free(message); }

Result<NetlinkSocket> open_netlink(int protocol) {
    NetlinkSocket socket(nl_socket_alloc());
    if (!socket) return fail("cannot allocate a netlink socket", {}, ENOMEM);
    errno = 0;
    if (const int code = nl_connect(socket.get(), protocol); code < 0)
        return netlink_fault("cannot connect to netlink protocol " + std::to_string(protocol), code, errno);
    return socket;
}

Result<NetlinkMessage> make_request(int type, int flags) {
    NetlinkMessage message(nlmsg_alloc_simple(type, flags));
    if (!message) return fail("cannot allocate a netlink message", {}, ENOMEM);
    return message;
}

Result<bool> ask(nl_sock& socket, nl_msg& request, const NetlinkAnswers& answers) {
    bool is_refused = false;
    nl_socket_modify_cb(&socket, NL_CB_VALID, NL_CB_CUSTOM, hand_on, const_cast<NetlinkAnswers*>(&answers));
    nl_socket_modify_err_cb(&socket, NL_CB_CUSTOM, note_refusal, &is_refused);
    auto outcome = attempt(socket, request, answers, is_refused);
    nl_socket_modify_cb(&socket, NL_CB_VALID, NL_CB_DEFAULT, nullptr, nullptr);
    nl_socket_modify_err_cb(&socket, NL_CB_DEFAULT, nullptr, nullptr);
    return outcome;
}

std::optional<std::span<const std::byte>> Attributes::find(int type) const {
    if (bytes_.empty() || bytes_.size() > INT_MAX) return std::nullopt;
    const auto* first = reinterpret_cast<const nlattr*>(bytes_.data());
    const nlattr* found = nla_find(first, static_cast<int>(bytes_.size()), type);
    if (found == nullptr) return std::nullopt;
    return std::span(static_cast<const std::byte*>(nla_data(found)),
                     static_cast<std::size_t>(nla_len(found)));
}

std::optional<std::uint32_t> Attributes::u32(int type) const {
    const auto bytes = find(type);
    std::uint32_t value = 0;
    if (!bytes || bytes->size() < sizeof value) return std::nullopt;
    std::memcpy(&value, bytes->data(), sizeof value);
    return value;
}

std::optional<std::string> Attributes::text(int type) const {
    const auto bytes = find(type);
    if (!bytes) return std::nullopt;
    const auto* first = reinterpret_cast<const char*>(bytes->data());
    return std::string(first, ::strnlen(first, bytes->size()));
}

Attributes Attributes::nested(int type) const {
    return Attributes(find(type).value_or(std::span<const std::byte>()));
}

} // namespace affinityd::host
