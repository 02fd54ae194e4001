// SPDX-License-Identifier: Apache-2.0
#include "control/join_connection.hpp"

#include "host/close_aside.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include <sys/socket.h>

namespace affinityd::control {

namespace {

// More than are refused in 10 ms, after which the loop looks at the socket again.
constexpr int most_unread = 1024;

host::CloseAside& unread() {
    static host::CloseAside connections;
    return connections;
}

/// Also a packet without a byte has its sender's credentials, or files, beside it.
bool has_packet(int fd) {
    std::byte byte{};
    iovec into{&byte, 1};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(ucred))> beside{};
    msghdr message{};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    message.msg_control = beside.data();
    message.msg_controllen = beside.size();
    return ::recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT) > 0 || message.msg_controllen > 0 ||
           (message.msg_flags & MSG_CTRUNC) != 0;
}

} // namespace

JoinConnection::~JoinConnection() {
    if (!fd_ || !may_hold_files_) return;
    ::shutdown(fd_.get(), SHUT_RD); // nothing comes after the look
    if (has_packet(fd_.get())) unread().close(std::move(fd_));
}

bool JoinConnection::has_room() { return unread().waiting() < most_unread; }

} // namespace affinityd::control
