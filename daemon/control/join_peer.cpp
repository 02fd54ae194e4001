// SPDX-License-Identifier: Apache-2.0
#include "control/join_peer.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace affinityd::control {

namespace {

constexpr int peer_pidfd = 77; // SO_PEERPIDFD of Linux 6.5, which older headers lack

/// The credentials that the kernel has put beside a packet.
std::optional<ucred> sender_of(const msghdr& message) {
    for (auto* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(const_cast<msghdr*>(&message), part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS ||
            part->cmsg_len != CMSG_LEN(sizeof(ucred)))
            continue;
        ucred sender{};
        std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
        return sender;
    }
    return std::nullopt;
}

} // namespace

std::optional<JoinPeer> JoinPeer::of(JoinConnection connection) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(connection.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0)
        return std::nullopt;
    return JoinPeer(std::move(connection), peer.pid, peer.uid);
}

bool JoinPeer::hold() {
    int process = -1;
    socklen_t size = sizeof process;
    if (::getsockopt(fd(), SOL_SOCKET, peer_pidfd, &process, &size) != 0) return errno == ENOPROTOOPT;
    process_ = host::Fd(process);
    return true;
}

bool JoinPeer::is_alive() const {
    if (process_) {
        pollfd ended{process_.get(), POLLIN, 0};
        return ::poll(&ended, 1, 0) == 0;
    }
    std::byte more{};
    return ::recv(fd(), &more, sizeof more, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

JoinPeer::Read JoinPeer::read() {
    iovec into{packet_.data(), packet_.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(ucred))> beside{};
    msghdr message{};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    message.msg_control = beside.data();
    message.msg_controllen = beside.size();
    const bool looks_first = connection_.may_hold_files();
    auto got = ::recvmsg(fd(), &message, MSG_DONTWAIT | (looks_first ? MSG_PEEK : 0));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Read::nothing_yet;
    if (got <= 0) return Read::gone;
    if (looks_first) {
        // Files for which there is no room are closed by who takes the packet, that is, by us: it stays
        // there.
        if ((message.msg_flags & MSG_CTRUNC) != 0) return Read::not_its_own;
        message.msg_controllen = beside.size();
        got = ::recvmsg(fd(), &message, MSG_DONTWAIT);
        if (got <= 0) return Read::gone;
    }
    size_ = static_cast<std::size_t>(got);
    const auto sender = sender_of(message);
    const bool is_its_own = sender && sender->pid == pid_ && sender->uid == user_;
    return is_its_own ? Read::packet : Read::not_its_own;
}

void JoinPeer::answer(std::span<const std::byte> reply) const {
    static_cast<void>(::send(fd(), reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

} // namespace affinityd::control
