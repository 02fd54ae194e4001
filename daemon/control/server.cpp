// SPDX-License-Identifier: Apache-2.0
#include "control/server.hpp"

#include "control/manager_object.hpp"
#include "host/fd.hpp"

#include <cerrno>
#include <cstring>
#include <list>
#include <system_error>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

namespace affinityd::control {

namespace {

using host::Fd;

/// Without a flush, which would wait for a peer that does not read.
struct BusClose {
    void operator()(sd_bus* bus) const { sd_bus_close_unref(bus); }
};
using Bus = std::unique_ptr<sd_bus, BusClose>;
struct SourceUnref {
    void operator()(sd_event_source* source) const { sd_event_source_disable_unref(source); }
};

constexpr std::size_t most_peers = 64;

Result<Fd> listen_at(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return fail("the path is too long for a socket", path, ENAMETOOLONG);
    std::memcpy(address.sun_path, path.data(), path.size());
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return fail("cannot make a socket", path, errno);
    ::unlink(path.c_str());              // of a daemon that was killed; a living one holds the instance lock
    const mode_t before = ::umask(0177); // root only, from the first moment
    const int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const int code = errno;
    ::umask(before);
    if (bound != 0) return fail("cannot bind the control socket", path, code);
    if (::listen(socket.get(), 16) != 0) return fail("cannot listen", path, errno);
    return socket;
}

class SocketServer final : public Server {
  public:
    SocketServer(sd_event* event, std::string path, ManagerObject object, Fd socket)
        : event_(event), path_(std::move(path)), object_(std::move(object)), socket_(std::move(socket)) {}
    SocketServer(const SocketServer&) = delete;
    SocketServer& operator=(const SocketServer&) = delete;

    ~SocketServer() override { ::unlink(path_.c_str()); }

    int begin() {
        sd_event_source* source = nullptr;
        const int status = sd_event_add_io(event_, &source, socket_.get(), EPOLLIN, on_connect, this);
        accept_.reset(source);
        if (const int bus = join_system_bus(); bus < 0) bus_fault_ = std::generic_category().message(-bus);
        return status;
    }

    [[nodiscard]] const std::string& bus_fault() const override { return bus_fault_; }

  private:
    static int on_connect(sd_event_source*, int fd, std::uint32_t, void* userdata) {
        auto* server = static_cast<SocketServer*>(userdata);
        Fd peer(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        server->sweep();
        if (!peer || server->peers_.size() >= most_peers) return 0;
        sd_bus* raw = nullptr;
        if (sd_bus_new(&raw) < 0) return 0;
        Bus bus(raw);
        sd_id128_t id{};
        sd_id128_randomize(&id);
        const int fd_of_peer = peer.release(); // the connection's from here on
        if (sd_bus_set_fd(raw, fd_of_peer, fd_of_peer) < 0) {
            ::close(fd_of_peer);
            return 0;
        }
        if (sd_bus_set_server(raw, 1, id) < 0 || sd_bus_negotiate_creds(raw, 1, SD_BUS_CREDS_EUID) < 0 ||
            add_manager_object(raw, server->object_) < 0 || sd_bus_start(raw) < 0 ||
            sd_bus_attach_event(raw, server->event_, SD_EVENT_PRIORITY_NORMAL) < 0)
            return 0;
        server->peers_.push_back(std::move(bus));
        return 0;
    }

    /// Connections whose other end has gone.
    void sweep() {
        std::erase_if(peers_, [](const Bus& bus) { return sd_bus_is_open(bus.get()) <= 0; });
    }

    int join_system_bus() {
        sd_bus* raw = nullptr;
        int status = sd_bus_open_system(&raw);
        if (status < 0) return status;
        Bus bus(raw);
        status = add_manager_object(raw, object_);
        if (status >= 0) status = sd_bus_attach_event(raw, event_, SD_EVENT_PRIORITY_NORMAL);
        if (status >= 0) status = sd_bus_request_name(raw, bus_name, 0);
        if (status < 0) return status;
        system_ = std::move(bus);
        return 0;
    }

    sd_event* event_;
    std::string path_;
    ManagerObject object_;
    Fd socket_;
    std::list<Bus> peers_;
    Bus system_;
    std::unique_ptr<sd_event_source, SourceUnref> accept_;
    std::string bus_fault_;
};

} // namespace

std::string socket_path(const std::string& runtime_dir) { return runtime_dir + "/control"; }

Result<std::unique_ptr<Server>> Server::start(sd_event* event, const std::string& runtime_dir,
                                              app::Commands& commands, Hooks hooks) {
    const std::string path = socket_path(runtime_dir);
    auto socket = listen_at(path);
    if (!socket) return std::unexpected(socket.error());
    auto server = std::make_unique<SocketServer>(event, path, ManagerObject{commands, std::move(hooks)},
                                                 std::move(*socket));
    if (const int status = server->begin(); status < 0)
        return fail("cannot serve the control socket", path, -status);
    return server;
}

} // namespace affinityd::control
