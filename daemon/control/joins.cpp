// SPDX-License-Identifier: Apache-2.0
#include "control/joins.hpp"

#include "base/clock.hpp"
#include "host/local_socket.hpp"
#include "host/signals.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::control {

namespace {

using Wish = core::JoinRequest::Wish;

template <std::size_t size>
void put_text(char (&into)[size], std::string_view text) {
    text = text.substr(0, size - 1);
    std::ranges::copy(text, into);
}

bool is_printable(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

/// A refusal before the daemon was asked; `status`: a negative errno value.
affinityd_join_reply refusal(int status) {
    affinityd_join_reply reply{};
    reply.magic = AFFINITYD_JOIN_MAGIC;
    reply.status = status;
    return reply;
}

/// The wish with the members that belong to it; all others must be empty.
std::expected<core::JoinRequest, int> wish_of(const affinityd_join_request& raw, std::string_view slot) {
    core::JoinRequest request{.own_pid = raw.pid, .tid = raw.tid};
    const bool has_cpu = raw.cpu != -1;
    bool is_good = !has_cpu && slot.empty();
    switch (raw.wish) {
    case AFFINITYD_WISH_JOIN:
        request.wish = Wish::join;
        request.slot = slot;
        is_good = !has_cpu && !slot.empty() && is_printable(slot);
        break;
    case AFFINITYD_WISH_SERVE:
        request.wish = Wish::serve;
        request.cpu = static_cast<unsigned>(raw.cpu);
        is_good = raw.cpu >= 0 && slot.empty();
        break;
    case AFFINITYD_WISH_LEAVE:
        request.wish = Wish::leave;
        break;
    case AFFINITYD_WISH_WHERE:
        request.wish = Wish::where;
        break;
    default:
        return std::unexpected(-ENOSYS);
    }
    if (!is_good) return std::unexpected(-EINVAL);
    return request;
}

} // namespace

std::expected<core::JoinRequest, int> parse_join(std::span<const std::byte> packet) {
    affinityd_join_request raw{};
    if (packet.size() != sizeof raw) return std::unexpected(-EBADMSG);
    std::memcpy(&raw, packet.data(), sizeof raw);
    if (raw.magic != AFFINITYD_JOIN_MAGIC) return std::unexpected(-EBADMSG);
    if (raw.version != AFFINITYD_JOIN_VERSION) return std::unexpected(-EPROTONOSUPPORT);
    const auto* end = std::ranges::find(raw.slot, '\0');
    const bool is_clean = end != std::end(raw.slot) &&
                          std::ranges::all_of(end, std::end(raw.slot), [](char c) { return c == '\0'; }) &&
                          std::ranges::all_of(raw.rest, [](auto word) { return word == 0; });
    if (!is_clean || raw.pid <= 0 || raw.tid <= 0) return std::unexpected(-EINVAL);
    return wish_of(raw, {raw.slot, end});
}

affinityd_join_reply reply_to(const core::JoinAnswer& answer) {
    auto reply = refusal(static_cast<int>(answer.outcome));
    put_text(reply.policy, answer.policy);
    put_text(reply.slot, answer.slot);
    if (!answer.slot.empty()) reply.flags |= AFFINITYD_JOINED;
    if (answer.serves) reply.flags |= AFFINITYD_SERVES;
    return reply;
}

namespace {

using Clock = std::chrono::steady_clock;

// Half of the loop's time at most. While no descriptor is left, the socket stays readable: the loop must not
// spin over it.
constexpr std::chrono::milliseconds turn{1};
constexpr std::uint64_t joins_interval_usec = 10'000;
constexpr unsigned turns_an_interval = 5;
constexpr std::size_t most_silent = 64;
// More than are refused in 10 ms, after which the loop looks at the socket again.
constexpr std::size_t most_closing = 1024;
constexpr std::size_t longest_packet = 128; ///< what is longer is cut, and so refused
// Any user can keep the socket ready all the time. sd-bus arms timers anew in each turn, and these never get
// theirs beside what is always ready and as important: joins take turns with the slices of a pass instead.
constexpr auto behind_others = std::int64_t{SD_EVENT_PRIORITY_IDLE};
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

enum class Packet {
    whole,
    nothing_yet,
    not_its_own, ///< another process than the one that connected, or one with another user, has sent it; or
                 ///< there are files beside it
    gone,
};

} // namespace

/// A process that has connected, as the kernel knows it.
struct JoinSocket::Peer {
    JoinSocket& socket;
    host::Fd connection;
    ucred owner{};
    host::Fd process{}; ///< its handle, once it was asked for
    std::array<std::byte, longest_packet> bytes{};
    std::size_t size = 0;
    Source readable{};

    Peer(JoinSocket& its_socket, host::Fd its_connection)
        : socket(its_socket), connection(std::move(its_connection)) {}
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() {
        readable.reset();
        socket.close(std::move(connection));
    }

    /// False: it is gone, or in no pid namespace that we can see into.
    [[nodiscard]] bool find_owner() {
        socklen_t length = sizeof owner;
        return ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &owner, &length) == 0 && owner.pid > 0;
    }
    /// From here on is_alive() is of this process, and of no later one with its number. False: it has ended.
    [[nodiscard]] bool hold() {
        int handle = -1;
        socklen_t length = sizeof handle;
        if (::getsockopt(connection.get(), SOL_SOCKET, peer_pidfd, &handle, &length) != 0)
            return errno == ENOPROTOOPT;
        process.reset(handle);
        return true;
    }
    /// False: it has ended, and its number may be another's by now. Kernels before 6.5 give no handle of a
    /// peer: there it counts as alive while its end of the connection is open.
    [[nodiscard]] bool is_alive() const {
        if (process) {
            pollfd ended{process.get(), POLLIN, 0};
            return ::poll(&ended, 1, 0) == 0;
        }
        std::byte more{};
        return ::recv(connection.get(), &more, sizeof more, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
    }
    [[nodiscard]] Packet read();
    void answer(const affinityd_join_reply& reply) const {
        static_cast<void>(::send(connection.get(), &reply, sizeof reply, MSG_DONTWAIT | MSG_NOSIGNAL));
    }
};

Packet JoinSocket::Peer::read() {
    iovec into{bytes.data(), bytes.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(ucred))> beside{};
    msghdr message{};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    message.msg_control = beside.data();
    message.msg_controllen = beside.size();
    auto got = ::recvmsg(connection.get(), &message, MSG_DONTWAIT | MSG_PEEK);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Packet::nothing_yet;
    if (got <= 0) return Packet::gone;
    // Files for which there is no room are closed by the process that takes the packet: it stays there.
    if ((message.msg_flags & MSG_CTRUNC) != 0) return Packet::not_its_own;
    message.msg_controllen = beside.size();
    got = ::recvmsg(connection.get(), &message, MSG_DONTWAIT);
    if (got <= 0) return Packet::gone;
    size = static_cast<std::size_t>(got);
    const auto sender = sender_of(message);
    const bool is_its_own = sender && sender->pid == owner.pid && sender->uid == owner.uid;
    return is_its_own ? Packet::whole : Packet::not_its_own;
}

std::string join_socket_path(const std::string& runtime_dir) {
    return runtime_dir + "/" AFFINITYD_JOIN_SOCKET;
}

JoinSocket::JoinSocket(sd_event* event, std::string path, core::Joining& joining)
    : event_(event), path_(std::move(path)), joining_(joining) {}

JoinSocket::~JoinSocket() {
    if (listener_) ::unlink(path_.c_str());
}

Result<std::unique_ptr<JoinSocket>> JoinSocket::start(sd_event* event, std::string path,
                                                      core::Joining& joining) {
    auto server = std::make_unique<JoinSocket>(event, std::move(path), joining);
    if (auto done = server->listen(); !done) return std::unexpected(done.error());
    return server;
}

Result<void> JoinSocket::listen() {
    auto socket = host::listen_at(path_, SOCK_SEQPACKET, 0111);
    if (!socket) return std::unexpected(socket.error());
    listener_ = std::move(*socket);
    const int on = 1;
    if (::setsockopt(listener_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
        return fail("cannot ask for the senders", path_, errno);
    sd_event_source* source = nullptr;
    int status = sd_event_add_io(event_, &source, listener_.get(), EPOLLIN, on_connect, this);
    accept_.reset(source);
    if (status >= 0) status = sd_event_source_set_priority(source, behind_others);
    if (status >= 0) status = sd_event_source_set_ratelimit(source, joins_interval_usec, turns_an_interval);
    if (status < 0) return fail("cannot serve the socket for joins", path_, -status);
    return {};
}

int JoinSocket::on_connect(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto& self = *static_cast<JoinSocket*>(userdata);
    const auto end = Clock::now() + turn;
    while (self.admit_next() && Clock::now() < end) {
    }
    return 0;
}

bool JoinSocket::admit_next() {
    if (*closing_ >= most_closing) return false; // the rate limit lets the loop rest
    host::Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return false;
    auto& peer = silent_.emplace_back(*this, std::move(connection));
    // The library tells a thread whose connection closes without an answer to come again.
    const bool is_over = !peer.find_owner() || !joining_.may_ask(peer.owner.uid) || serve(peer);
    if (is_over || await(peer) < 0)
        silent_.pop_back();
    else if (silent_.size() > most_silent)
        silent_.pop_front();
    return true;
}

int JoinSocket::await(Peer& peer) {
    sd_event_source* readable = nullptr;
    const int status = sd_event_add_io(event_, &readable, peer.connection.get(), EPOLLIN, on_packet, &peer);
    peer.readable.reset(readable);
    return status < 0 ? status : sd_event_source_set_priority(readable, behind_others);
}

int JoinSocket::on_packet(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto& peer = *static_cast<Peer*>(userdata);
    auto& peers = peer.socket.silent_;
    if (peer.socket.serve(peer)) std::erase_if(peers, [&](const Peer& one) { return &one == &peer; });
    return 0;
}

bool JoinSocket::serve(Peer& peer) {
    const auto begun = thread_time();
    const auto packet = peer.read();
    if (packet == Packet::nothing_yet) return false;
    if (packet == Packet::not_its_own)
        peer.answer(refusal(-EPERM));
    else if (packet == Packet::whole && peer.hold())
        peer.answer(answer_to(peer));
    joining_.charge(peer.owner.uid, thread_time() - begun);
    return true;
}

affinityd_join_reply JoinSocket::answer_to(Peer& peer) {
    auto request = parse_join(std::span(peer.bytes).first(peer.size));
    if (!request) return refusal(request.error());
    request->pid = peer.owner.pid;
    request->is_alive = [&peer] { return peer.is_alive(); };
    return reply_to(joining_.ask(*request));
}

/// Files may lie in a connection, unread. To close it closes them, and that may take as long as their sender
/// likes (a connection that lingers, a file system of one's own): a thread does it.
void JoinSocket::close(host::Fd connection) {
    if (!connection) return;
    ::shutdown(connection.get(), SHUT_RDWR); // its peer need not wait for the thread
    unclosed_.push_back(connection.release());
    ++*closing_;
    const bool is_begun = host::start_thread([connections = unclosed_, closing = closing_] {
        for (const int one : connections) {
            ::close(one);
            --*closing;
        }
    });
    if (is_begun) unclosed_.clear(); // else the next connection that is closed tries again
}

} // namespace affinityd::control
