// SPDX-License-Identifier: Apache-2.0
#include "coexist/irqbalance_call.hpp"

#include "coexist/irqbalance_protocol.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

namespace affinityd::coexist {

namespace {

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

/// unix(7), SO_PEERCRED: root, or the daemon's own user, listens there.
bool is_roots(int fd) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == 0 || peer.uid == ::geteuid());
}

bool add(int epoll, int fd) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.fd = fd;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

} // namespace

/// Connects and sends. A queue of connections that is full is an Error: the next pass tries again.
Result<void> IrqbalanceCall::connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) return fail("the path is too long for a socket", path_);
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_) return fail("cannot make a socket", path_, errno);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return fail("cannot connect", path_, errno);
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
    if (!socket_) {
        if (auto sent = connect(); !sent) return std::unexpected(sent.error());
        if (!wants_answer_) return std::string();
    }
    const auto whole = receive();
    if (!whole) return std::unexpected(whole.error());
    if (*whole) return std::move(answer_);
    if (now >= deadline_) return fail("no answer in time", path_);
    return std::nullopt;
}

WakeUp::WakeUp()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (!epoll_ || !timer_ || !add(epoll_.get(), timer_.get())) epoll_.reset();
}

void WakeUp::watch(int fd) {
    // A descriptor that was closed has left the set by itself; its number may be another one's by now.
    if (watched_ >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched_, nullptr);
    watched_ = fd >= 0 && add(epoll_.get(), fd) ? fd : -1;
}

void WakeUp::set(int fd, Clock::time_point moment) {
    watch(fd);
    const auto since =
        std::chrono::duration_cast<std::chrono::nanoseconds>(moment.time_since_epoch()).count();
    constexpr long long second = 1'000'000'000;
    itimerspec at{};
    at.it_value.tv_sec = since / second;
    at.it_value.tv_nsec = since > 0 ? since % second : 1; // all zeros would disarm it
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void WakeUp::clear() {
    watch(-1);
    const itimerspec never{};
    ::timerfd_settime(timer_.get(), 0, &never, nullptr);
}

} // namespace affinityd::coexist
