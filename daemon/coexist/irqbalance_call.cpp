// SPDX-License-Identifier: Apache-2.0
#include "coexist/irqbalance_call.hpp"

#include "coexist/irqbalance_protocol.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace affinityd::coexist {

namespace {

constexpr std::chrono::milliseconds retry{20};

/// irqbalance wants to see who sends: credentials go with the request.
bool send_with_credentials(int fd, const std::string& request) {
    iovec part{const_cast<char*>(request.data()), request.size()}; // NOLINT: sendmsg only reads it
    const ucred own{::getpid(), ::getuid(), ::getgid()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof own)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_CREDENTIALS;
    header->cmsg_len = CMSG_LEN(sizeof own);
    std::memcpy(CMSG_DATA(header), &own, sizeof own);
    return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(request.size());
}

/// unix(7), SO_PEERCRED: who listens there.
bool is_roots(int fd) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == 0 || peer.uid == ::geteuid());
}

} // namespace

/// False: the queue of connections is full.
Result<bool> IrqbalanceCall::connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) return fail("the path is too long for a socket", path_);
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_) return fail("cannot make a socket", path_, errno);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        is_connected_ = true;
        return true;
    }
    if (errno == EAGAIN) return false;
    return fail("cannot connect", path_, errno);
}

Result<void> IrqbalanceCall::send() {
    if (!is_roots(socket_.get())) return fail("another user than root listens", path_);
    if (!send_with_credentials(socket_.get(), request_)) return fail("cannot send", path_, errno);
    return {};
}

/// True: the answer is whole.
Result<bool> IrqbalanceCall::receive() {
    std::array<char, 4096> chunk{};
    while (answer_.size() < longest_answer) {
        const auto got = ::recv(socket_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return false;
        if (got < 0) return fail("no answer", path_, errno);
        if (got == 0) return true;
        answer_.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return true;
}

std::optional<Result<std::string>> IrqbalanceCall::step(Clock::time_point now) {
    if (!is_connected_) {
        const auto connected = connect();
        if (!connected) return std::unexpected(connected.error());
        if (*connected) {
            if (auto sent = send(); !sent) return std::unexpected(sent.error());
            if (!wants_answer_) return std::string();
        }
    }
    if (is_connected_) {
        const auto whole = receive();
        if (!whole) return std::unexpected(whole.error());
        if (*whole) return std::move(answer_);
    }
    if (now >= deadline_) return fail("no answer in time", path_);
    return std::nullopt;
}

IrqbalanceCall::Clock::time_point IrqbalanceCall::wake_at(Clock::time_point now) const {
    return is_connected_ ? deadline_ : std::min(deadline_, now + retry);
}

} // namespace affinityd::coexist
