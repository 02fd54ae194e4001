// SPDX-License-Identifier: Apache-2.0
#include "control/join_socket.hpp"

#include "control/join_message.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace affinityd::control {

namespace {

using Clock = std::chrono::steady_clock;

// Half of the loop's time at most. While no descriptor is left, the socket stays readable: the loop must not
// spin over it.
constexpr std::chrono::milliseconds turn{1};
constexpr std::uint64_t joins_interval_usec = 10'000;
constexpr unsigned turns_an_interval = 5;
constexpr std::size_t most_silent = 64;
// Any user can keep the socket ready all the time. sd-bus arms timers anew in each turn, and these never get
// theirs beside what is always ready and as important: joins take turns with the slices of a pass instead.
constexpr auto behind_others = std::int64_t{SD_EVENT_PRIORITY_IDLE};
#ifdef SO_PASSRIGHTS
constexpr int pass_rights = SO_PASSRIGHTS;
#else
constexpr int pass_rights = 83; // of Linux 6.16, which older headers lack
#endif

bool refuse_files(int socket) {
    const int off = 0;
    return ::setsockopt(socket, SOL_SOCKET, pass_rights, &off, sizeof off) == 0;
}

/// Seen, not believed: elsewhere that number may be another option's, or any may be accepted.
bool is_refusal_effective() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
        return false;
    const host::Fd sender(ends[0]), receiver(ends[1]);
    std::byte byte{};
    iovec what{&byte, 1};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> beside{};
    msghdr message{};
    message.msg_iov = &what;
    message.msg_iovlen = 1;
    message.msg_control = beside.data();
    message.msg_controllen = beside.size();
    auto* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &ends[0], sizeof(int));
    return refuse_files(receiver.get()) && ::sendmsg(sender.get(), &message, MSG_NOSIGNAL) < 0 &&
           errno == EPERM;
}

Result<JoinSocket::Listener> listen_for_all(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return fail("the path is too long for a socket", path, ENAMETOOLONG);
    std::memcpy(address.sun_path, path.data(), path.size());
    host::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return fail("cannot make a socket", path, errno);
    const int on = 1;
    if (::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
        return fail("cannot ask who sends", path, errno);
    // Where the kernel can, it refuses to send files along; elsewhere see JoinConnection.
    const bool refuses_files = refuse_files(socket.get()) && is_refusal_effective();
    ::unlink(path.c_str()); // left by a daemon that was killed; a living one holds the instance lock
    const mode_t before = ::umask(0111);
    const int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const int code = errno;
    ::umask(before);
    if (bound != 0) return fail("cannot bind the socket for joins", path, code);
    if (::listen(socket.get(), SOMAXCONN) != 0) return fail("cannot listen", path, errno);
    return JoinSocket::Listener{std::move(socket), !refuses_files};
}

} // namespace

std::string join_socket_path(const std::string& runtime_dir) {
    return runtime_dir + "/" AFFINITYD_JOIN_SOCKET;
}

Result<std::unique_ptr<JoinSocket>> JoinSocket::start(sd_event* event, std::string path,
                                                      app::Joining& joining) {
    auto listener = listen_for_all(path);
    if (!listener) return std::unexpected(listener.error());
    auto server = std::make_unique<JoinSocket>(event, std::move(path), joining, std::move(*listener));
    if (const int status = server->listen(); status < 0)
        return fail("cannot serve the socket for joins", server->path_, -status);
    return server;
}

JoinSocket::~JoinSocket() { ::unlink(path_.c_str()); }

int JoinSocket::listen() {
    sd_event_source* source = nullptr;
    int status = sd_event_add_io(event_, &source, listener_.fd.get(), EPOLLIN, on_connect, this);
    accept_.reset(source);
    if (status >= 0) status = sd_event_source_set_priority(source, behind_others);
    return status < 0 ? status
                      : sd_event_source_set_ratelimit(source, joins_interval_usec, turns_an_interval);
}

int JoinSocket::on_connect(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto& self = *static_cast<JoinSocket*>(userdata);
    const auto end = Clock::now() + turn;
    while (self.admit_next() && Clock::now() < end) {
    }
    return 0;
}

bool JoinSocket::admit_next() {
    if (!JoinConnection::has_room()) return false; // the rate limit lets the loop rest
    host::Fd connection(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return false;
    auto peer = JoinPeer::of(JoinConnection(std::move(connection), listener_.may_get_files));
    // One that is closed without an answer is told by the library to come again.
    if (peer && joining_.may_ask(peer->user()) && !serve(*peer)) await(std::move(*peer));
    return true;
}

bool JoinSocket::serve(JoinPeer& peer) {
    const auto begun = Clock::now();
    const auto read = peer.read();
    if (read == JoinPeer::Read::nothing_yet) return false;
    const auto say = [&](const affinityd_join_reply& reply) {
        peer.answer(std::as_bytes(std::span(&reply, 1)));
    };
    if (read == JoinPeer::Read::not_its_own)
        say(refusal(-EPERM));
    else if (read == JoinPeer::Read::packet && peer.hold())
        say(answer_to(peer));
    joining_.charge(peer.user(), Clock::now() - begun);
    return true;
}

affinityd_join_reply JoinSocket::answer_to(JoinPeer& peer) {
    auto request = parse_join(peer.packet());
    if (!request) return refusal(request.error());
    request->pid = peer.pid();
    request->is_alive = [&peer] { return peer.is_alive(); };
    return reply_to(joining_.ask(*request));
}

void JoinSocket::await(JoinPeer peer) {
    if (silent_.size() >= most_silent) silent_.pop_front();
    auto& one = silent_.emplace_back(this, std::move(peer));
    sd_event_source* readable = nullptr;
    int status = sd_event_add_io(event_, &readable, one.peer.fd(), EPOLLIN, on_packet, &one);
    one.readable.reset(readable);
    if (status >= 0) status = sd_event_source_set_priority(readable, behind_others);
    if (status < 0) silent_.pop_back();
}

int JoinSocket::on_packet(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto& one = *static_cast<Silent*>(userdata);
    if (one.socket->serve(one.peer))
        std::erase_if(one.socket->silent_, [&](const Silent& other) { return &other == &one; });
    return 0;
}

} // namespace affinityd::control
