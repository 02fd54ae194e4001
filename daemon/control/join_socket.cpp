// SPDX-License-Identifier: Apache-2.0
#include "control/join_socket.hpp"

#include "base/clock.hpp"
#include "control/join_message.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace affinityd::control {

namespace {

// Of all users together. While no descriptor is left, the socket stays readable: the loop must not spin over
// it.
constexpr std::uint64_t joins_interval_usec = 10'000;
constexpr unsigned turns_an_interval = 120;
// Of the daemon's time, for those who ask too often or have gone, beyond one of them in each turn. A queue of
// SOMAXCONN (4,096) of them is to be over before the library gives up, also while slices of a pass take turns
// with them.
constexpr double refusing_usec_per_second = 500'000;
// Any user can keep the socket ready all the time. sd-bus arms timers anew in each turn, and these never get
// theirs beside what is always ready and as important: joins take turns with the slices of a pass instead.
constexpr auto behind_others = std::int64_t{SD_EVENT_PRIORITY_IDLE};
#ifdef SO_PASSRIGHTS
constexpr int pass_rights = SO_PASSRIGHTS;
#else
constexpr int pass_rights = 83; // of Linux 6.16, which older headers lack
#endif
constexpr std::size_t most_processes = 4096; // with a limit of their own that is not full

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

Result<std::unique_ptr<JoinSocket>> JoinSocket::start(sd_event* event, std::string path, Others others,
                                                      Limits limits) {
    auto listener = listen_for_all(path);
    if (!listener) return std::unexpected(listener.error());
    auto server =
        std::make_unique<JoinSocket>(event, std::move(path), std::move(others), limits, std::move(*listener));
    if (const int status = server->listen(); status < 0)
        return fail("cannot serve the socket for joins", server->path_, -status);
    return server;
}

JoinSocket::JoinSocket(sd_event* event, std::string path, Others others, Limits limits, Listener listener)
    : event_(event), path_(std::move(path)), others_(std::move(others)), limits_(limits),
      listener_(std::move(listener)), users_(limits.of_user, limits.of_user_at_once),
      processes_(limits.of_process, limits.of_process_at_once, most_processes),
      refusing_(refusing_usec_per_second, static_cast<double>(limits.refusals_at_once.count())) {}

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
    static_cast<JoinSocket*>(userdata)->admit_some();
    return 0;
}

void JoinSocket::admit_some() {
    const auto begun = Clock::now();
    for (auto before = begun;;) {
        const auto served = admit_next();
        if (served != Served::too_often && served != Served::gone) return;
        const auto now = Clock::now();
        if (!refusing_.take(now, std::chrono::duration<double, std::micro>(now - before).count()) ||
            now - begun >= limits_.refusals || others_.is_awaited())
            return;
        before = now;
    }
}

/// False: its user has connected too often, or it has. What one process asks too often is not taken from its
/// user's others.
bool JoinSocket::may(const JoinPeer& peer, uid_t person) {
    const auto now = Clock::now();
    if (!users_.take(person, now)) return false;
    if (processes_.take(static_cast<std::uint32_t>(peer.pid()), now)) return true;
    users_.charge(person, -1);
    return false;
}

/// Takes in one who has connected.
JoinSocket::Served JoinSocket::admit_next() {
    if (!JoinConnection::has_room()) return Served::nobody; // the rate limit lets the loop rest
    host::Fd connection(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return Served::nobody;
    auto peer = JoinPeer::of(JoinConnection(std::move(connection), listener_.may_get_files));
    if (!peer) return Served::gone;
    const auto person = others_.joining.person(peer->user());
    const bool is_too_often = !may(*peer, person);
    const auto served = serve(*peer, person, is_too_often);
    if (is_too_often) return Served::too_often; // closed, whatever has come
    if (served != Served::nothing_yet) return served;
    await(std::move(*peer), person);
    return served;
}

JoinSocket::Served JoinSocket::serve(JoinPeer& peer, uid_t person, bool is_too_often) {
    const auto read = peer.read();
    if (read == JoinPeer::Read::nothing_yet) return Served::nothing_yet;
    if (read == JoinPeer::Read::gone) return Served::gone;
    const auto say = [&](const affinityd_join_reply& reply) {
        peer.answer(std::as_bytes(std::span(&reply, 1)));
    };
    if (is_too_often) {
        say(refusal(-EAGAIN));
        return Served::too_often;
    }
    if (read == JoinPeer::Read::not_its_own) {
        say(refusal(-EPERM));
    } else if (peer.hold()) {
        say(answer_to(peer, person));
    }
    return Served::looked_at;
}

affinityd_join_reply JoinSocket::answer_to(JoinPeer& peer, uid_t person) {
    auto request = parse_join(peer.packet());
    if (!request) return refusal(request.error());
    request->pid = peer.pid();
    request->is_alive = [&peer] { return peer.is_alive(); };
    const auto answer = others_.joining.ask(*request);
    if (answer.cost > 1) {
        users_.charge(person, answer.cost - 1);
        processes_.charge(static_cast<std::uint32_t>(peer.pid()), answer.cost - 1);
    }
    return reply_to(answer);
}

/// What connects and is silent holds a descriptor: those of one user make room for each other.
void JoinSocket::make_room(uid_t person) {
    const auto is_theirs = [&](const Silent& one) { return one.person == person; };
    const auto theirs = static_cast<std::size_t>(std::ranges::count_if(silent_, is_theirs));
    if (theirs >= limits_.silent_of_user)
        silent_.erase(std::ranges::find_if(silent_, is_theirs));
    else if (silent_.size() >= limits_.silent)
        silent_.pop_front();
}

void JoinSocket::await(JoinPeer peer, uid_t person) {
    make_room(person);
    silent_.push_back({this, std::move(peer), person});
    auto& one = silent_.back();
    sd_event_source *readable = nullptr, *deadline = nullptr;
    int status = sd_event_add_io(event_, &readable, one.peer.fd(), EPOLLIN, on_packet, &one);
    one.readable.reset(readable);
    if (status >= 0) status = sd_event_source_set_priority(readable, behind_others);
    if (status >= 0)
        status = sd_event_add_time_relative(event_, &deadline, CLOCK_MONOTONIC, usec_of(limits_.silence), 0,
                                            on_deadline, &one);
    one.deadline.reset(deadline);
    if (status < 0) silent_.pop_back();
}

void JoinSocket::drop(const Silent& one) {
    std::erase_if(silent_, [&](const Silent& other) { return &other == &one; });
}

int JoinSocket::on_packet(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto& one = *static_cast<Silent*>(userdata);
    if (one.socket->serve(one.peer, one.person, false) != Served::nothing_yet) one.socket->drop(one);
    return 0;
}

int JoinSocket::on_deadline(sd_event_source*, std::uint64_t, void* userdata) {
    const auto& one = *static_cast<Silent*>(userdata);
    one.socket->drop(one);
    return 0;
}

} // namespace affinityd::control
