// SPDX-License-Identifier: Apache-2.0
#include "control/private_socket.hpp"

#include "control/bus_front.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace affinityd::control {

namespace {

constexpr std::uint64_t accept_interval_usec = 100'000;
constexpr unsigned accepts_an_interval = 64;
constexpr std::uint64_t most_calls = 4;
constexpr std::size_t most_peers = 64;

using host::Fd;

Result<Fd> listen_at(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return fail("the path is too long for a socket", path, ENAMETOOLONG);
    std::memcpy(address.sun_path, path.data(), path.size());
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return fail("cannot make a socket", path, errno);
    ::unlink(path.c_str()); // left by a daemon that was killed; a living one holds the instance lock
    const mode_t before = ::umask(0177); // root only, from the first moment
    const int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const int code = errno;
    ::umask(before);
    if (bound != 0) return fail("cannot bind the control socket", path, code);
    if (::listen(socket.get(), 64) != 0) return fail("cannot listen", path, errno);
    return socket;
}

/// From the socket, never from what the message says of itself.
bool is_from_privileged(sd_bus_message* message) {
    sd_bus_creds* creds = nullptr;
    uid_t user = static_cast<uid_t>(-1);
    const bool known =
        sd_bus_get_owner_creds(sd_bus_message_get_bus(message), SD_BUS_CREDS_EUID, &creds) >= 0 &&
        sd_bus_creds_get_euid(creds, &user) >= 0;
    sd_bus_creds_unref(creds);
    return known && is_privileged_user(user);
}

} // namespace

Result<std::unique_ptr<PrivateSocket>> PrivateSocket::start(sd_event* event, std::string path,
                                                            CommandRunner& runner) {
    auto socket = listen_at(path);
    if (!socket) return std::unexpected(socket.error());
    auto server = std::make_unique<PrivateSocket>(event, std::move(path), runner, std::move(*socket));
    if (const int status = server->listen(); status < 0)
        return fail("cannot serve the control socket", server->path_, -status);
    return server;
}

PrivateSocket::~PrivateSocket() { ::unlink(path_.c_str()); }

int PrivateSocket::listen() {
    sd_event_source* source = nullptr;
    const int status = sd_event_add_io(event_, &source, socket_.get(), EPOLLIN, on_connect, this);
    accept_.reset(source);
    // While no descriptor is left, the socket stays readable: the loop must not spin over it.
    if (status >= 0) sd_event_source_set_ratelimit(source, accept_interval_usec, accepts_an_interval);
    return status < 0 ? status : before_flush(event_, on_end, this, end_);
}

void PrivateSocket::take(Request request) {
    if (!is_from_privileged(request.call.message()))
        return request.call.fail(SD_BUS_ERROR_ACCESS_DENIED, "this socket is root's");
    const auto* bus = sd_bus_message_get_bus(request.call.message());
    const auto peer = std::ranges::find(peers_, bus, [](const Peer& one) { return one.bus.get(); });
    if (peer != peers_.end()) request.call.send_through(peer->outbox);
    runner_.run(std::move(request));
}

int PrivateSocket::on_connect(sd_event_source*, int fd, std::uint32_t, void* userdata) {
    auto& self = *static_cast<PrivateSocket*>(userdata);
    Fd connection(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection) self.admit(std::move(connection));
    return 0;
}

void PrivateSocket::admit(Fd connection) {
    make_room();
    sd_bus* bus = nullptr;
    if (sd_bus_new(&bus) < 0) return;
    auto& peer = peers_.emplace_back();
    peer.bus.reset(bus);
    peer.heard = Clock::now();
    peer.outbox = std::make_shared<Outbox>(event_, bus, most_calls, [bus] { sd_bus_close(bus); });
    const int fd = connection.get();
    int status = sd_bus_set_fd(bus, fd, fd);
    if (status >= 0) static_cast<void>(connection.release()); // the bus's from here on
    if (status >= 0) status = prepare(peer);
    if (status < 0) peers_.pop_back();
}

int PrivateSocket::prepare(Peer& peer) {
    sd_bus* bus = peer.bus.get();
    sd_id128_t id{};
    sd_id128_randomize(&id);
    int status = sd_bus_set_server(bus, 1, id);
    if (status >= 0) status = sd_bus_negotiate_creds(bus, 1, SD_BUS_CREDS_EUID);
    if (status >= 0) status = sd_bus_set_connected_signal(bus, 1);
    if (status >= 0) status = sd_bus_add_filter(bus, nullptr, on_message, &peer);
    if (status >= 0) status = add_manager_object(bus, *this);
    if (status >= 0) status = sd_bus_start(bus);
    if (status >= 0) status = sd_bus_attach_event(bus, event_, SD_EVENT_PRIORITY_NORMAL);
    return status;
}

int PrivateSocket::on_end(sd_event_source*, void* userdata) {
    static_cast<PrivateSocket*>(userdata)->peers_.clear();
    return 0;
}

int PrivateSocket::on_message(sd_bus_message* message, void* userdata, sd_bus_error*) {
    auto& peer = *static_cast<Peer*>(userdata);
    peer.heard = Clock::now();
    if (sd_bus_message_is_signal(message, "org.freedesktop.DBus.Local", "Connected") > 0) read_rest(peer);
    if (!peer.outbox->is_full()) return 0;
    sd_bus_close(peer.bus.get());
    return 1;
}

/// sd-bus keeps calls that come in together with the end of the handshake, and waits for more before it looks
/// at them.
void PrivateSocket::read_rest(Peer& peer) {
    sd_event_source* source = nullptr;
    if (sd_event_add_defer(sd_bus_get_event(peer.bus.get()), &source, on_rest, &peer) < 0) return;
    peer.rest.reset(source);
    sd_event_source_set_enabled(source, SD_EVENT_ON);
}

int PrivateSocket::on_rest(sd_event_source* source, void* userdata) {
    // The loop detects a broken connection by its descriptor.
    if (sd_bus_process(static_cast<Peer*>(userdata)->bus.get(), nullptr) <= 0)
        sd_event_source_set_enabled(source, SD_EVENT_OFF);
    return 0;
}

void PrivateSocket::make_room() {
    std::erase_if(peers_, [](const Peer& peer) { return sd_bus_is_open(peer.bus.get()) <= 0; });
    if (peers_.size() < most_peers) return;
    peers_.erase(std::ranges::min_element(peers_, {}, [](const Peer& peer) {
        return std::pair(peer.outbox.use_count() > 1, peer.heard); // those that wait for an answer last
    }));
}

} // namespace affinityd::control
