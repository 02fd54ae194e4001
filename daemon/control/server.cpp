// SPDX-License-Identifier: Apache-2.0
#include "control/server.hpp"

#include "host/fd.hpp"
#include "host/local_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::control {

namespace {

using Moments = std::chrono::steady_clock;

/// Names of policies, processes and interfaces are shorter.
constexpr std::size_t longest_argument = 4096;
constexpr std::size_t longest_text = 1U << 16; ///< of a policy: some wait for polkit
constexpr std::size_t most_senders = 256;
constexpr std::chrono::seconds kept{1};

} // namespace

bool is_privileged_user(uid_t user) { return user == 0 || user == ::geteuid(); }

std::string socket_path(const std::string& runtime_dir) { return runtime_dir + "/control"; }

namespace {

/// A question of users without privilege, and its answer for all who ask the same.
struct Shared {
    std::optional<Result<OwnedText>> answer{}; ///< no value: it is being worked out
    Moments::time_point expires{};
    std::vector<std::pair<uid_t, Call>> waiting{}; ///< they get an error if the question is given up

    void reply_to(uid_t user, Call& call) const {
        call.reply(*answer ? Result<std::string>((*answer)->seen_by(user))
                           : std::unexpected(answer->error()));
    }
    void finish(Result<OwnedText> its_answer) {
        answer = std::move(its_answer);
        expires = Moments::now() + kept;
        for (auto& [user, call] : std::exchange(waiting, {}))
            reply_to(user, call);
    }
};

/// The question belongs to the daemon until it is answered, and to the front for a second after that.
struct Asked {
    std::weak_ptr<Shared> open;
    std::shared_ptr<Shared> answered;
};

} // namespace

/// Takes calls from the system bus. Root and the daemon's own user may do everything. All others read answers
/// without the details of other users' processes, as far as their budget goes, and change something if polkit
/// agrees. Answers for them are kept for a second, and those who ask meanwhile share them.
class Server::BusFront final : public Front {
  public:
    BusFront(CommandRunner& runner, SystemBus& calls, const Limits& limits)
        : runner_(runner), calls_(calls), limits_(limits), polkit_(calls, limits.polkit) {}

    /// Serves a new connection: it gets the object. 0 or a negative errno value.
    [[nodiscard]] int serve(sd_bus* bus, std::shared_ptr<Outbox> outbox) {
        outbox_ = std::move(outbox);
        return add_manager_object(bus, *this);
    }
    void take(Request request) override;
    /// A connection has ended: drops what was asked over it.
    void forget() {
        polkit_.forget();
        senders_.clear();
    }

  private:
    /// A question to the bus for the user of a sender. A message's own word on that is not trusted.
    struct Sender {
        BusFront* front = nullptr;
        Request request;
        Slot slot{};
        std::list<Sender>::iterator self{};
    };
    void take_from(uid_t user, Request request);
    void read(uid_t user, Request request);
    static int on_sender(sd_bus_message* reply, void* userdata, sd_bus_error*);

    CommandRunner& runner_;
    SystemBus& calls_;
    Limits limits_;
    std::list<Sender> senders_;
    std::shared_ptr<Outbox> outbox_;
    Polkit polkit_;
    std::unordered_map<std::string, std::shared_ptr<Asked>> asked_; ///< by question
};

void Server::BusFront::take(Request request) {
    request.call.send_through(outbox_);
    auto* bus = calls_.connection();
    if (bus == nullptr || senders_.size() >= most_senders)
        return request.call.refuse("too many callers at once, or the bus cannot be asked for their users");
    auto& sender = senders_.emplace_back(this, std::move(request));
    sender.self = std::prev(senders_.end());
    sd_bus_slot* slot = nullptr;
    const int status = sd_bus_call_method_async(bus, &slot, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                                "org.freedesktop.DBus", "GetConnectionUnixUser", on_sender,
                                                &sender, "s", sender.request.call.sender().c_str());
    sender.slot.reset(slot);
    if (status < 0) senders_.pop_back();
}

int Server::BusFront::on_sender(sd_bus_message* reply, void* userdata, sd_bus_error*) {
    auto& sender = *static_cast<Sender*>(userdata);
    auto request = std::move(sender.request);
    auto& front = *sender.front;
    front.senders_.erase(sender.self);
    std::uint32_t user = 0;
    if (sd_bus_message_is_method_error(reply, nullptr) != 0 || sd_bus_message_read(reply, "u", &user) <= 0)
        request.call.fail(SD_BUS_ERROR_ACCESS_DENIED, "the caller's user is not known");
    else
        front.take_from(user, std::move(request));
    return 0;
}

void Server::BusFront::take_from(uid_t user, Request request) {
    request.user = user;
    if (limits_.is_privileged(user)) return runner_.run(std::move(request));
    if (!limits_.may_ask(user))
        return request.call.refuse("too much is asked for by this user: try again in a second");
    const auto is_long = [](const std::string& text) { return text.size() > longest_text; };
    if (request.argument.size() > longest_argument || std::ranges::any_of(request.more, is_long))
        return request.call.fail(SD_BUS_ERROR_INVALID_ARGS, "the argument is too long");
    if (only_reads(request.method)) return read(user, std::move(request));
    polkit_.ask(std::move(request.call), user,
                [this, user, method = request.method, argument = request.argument, until = request.until,
                 more = request.more](Call call) {
                    runner_.run({method, argument, std::move(call), until, user, more});
                });
}

void Server::BusFront::read(uid_t user, Request request) {
    const auto now = Moments::now();
    std::erase_if(asked_, [&](const auto& one) {
        return one.second->answered ? one.second->answered->expires <= now : one.second->open.expired();
    });
    auto& asked = asked_[std::to_string(static_cast<int>(request.method)) + " " + request.argument];
    if (asked && asked->answered) return asked->answered->reply_to(user, request.call);
    auto shared = asked ? asked->open.lock() : std::make_shared<Shared>();
    shared->waiting.emplace_back(user, std::move(request.call));
    if (asked) return; // it is being worked out
    asked = std::make_shared<Asked>(shared, nullptr);
    runner_.read(request.method, request.argument, [shared, asked](Result<OwnedText> answer) {
        shared->finish(std::move(answer));
        asked->answered = shared;
    });
}

namespace {

constexpr std::uint64_t accept_interval_usec = 100'000;
constexpr unsigned accepts_an_interval = 64;
constexpr std::uint64_t most_calls = 4;
constexpr std::size_t most_peers = 64;

/// A connection to the private socket.
struct BusPeer {
    Bus bus;
    Source rest; ///< of what came in together with the end of the handshake
    std::shared_ptr<Outbox> outbox{};
};

bool is_of_privileged(const host::Fd& connection) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           is_privileged_user(peer.uid);
}

int on_rest(sd_event_source* source, void* userdata) {
    // The loop detects a broken connection by its descriptor.
    if (sd_bus_process(static_cast<BusPeer*>(userdata)->bus.get(), nullptr) <= 0)
        sd_event_source_set_enabled(source, SD_EVENT_OFF);
    return 0;
}

/// sd-bus keeps calls that come in together with the end of the handshake, and waits for more before it looks
/// at them.
void read_rest(BusPeer& peer) {
    sd_event_source* source = nullptr;
    if (sd_event_add_defer(sd_bus_get_event(peer.bus.get()), &source, on_rest, &peer) < 0) return;
    peer.rest.reset(source);
    sd_event_source_set_enabled(source, SD_EVENT_ON);
}

int on_peers_message(sd_bus_message* message, void* userdata, sd_bus_error*) {
    auto& peer = *static_cast<BusPeer*>(userdata);
    if (sd_bus_message_is_signal(message, "org.freedesktop.DBus.Local", "Connected") > 0) read_rest(peer);
    if (!peer.outbox->is_full()) return 0;
    sd_bus_close(peer.bus.get());
    return 1;
}

} // namespace

/// The object on a socket of the daemon's own, which only root can connect to and which needs no message bus.
/// Up to 64 peers are served; when another comes, the oldest makes room. A peer with more than four calls
/// that are not answered, or answers that it has not taken, is disconnected.
class Server::PrivateSocket final : public Front {
  public:
    PrivateSocket(sd_event* event, CommandRunner& runner) : event_(event), runner_(runner) {}
    PrivateSocket(const PrivateSocket&) = delete;
    PrivateSocket& operator=(const PrivateSocket&) = delete;
    ~PrivateSocket() override {
        if (socket_) ::unlink(path_.c_str());
    }
    [[nodiscard]] Result<void> listen(const std::string& path);
    void take(Request request) override;

  private:
    void admit(host::Fd connection);
    [[nodiscard]] int prepare(BusPeer& peer);
    static int on_connect(sd_event_source*, int fd, std::uint32_t, void* userdata);

    sd_event* event_;
    CommandRunner& runner_;
    std::string path_;
    host::Fd socket_;
    std::list<BusPeer> peers_;
    Source accept_;
};

Result<void> Server::PrivateSocket::listen(const std::string& path) {
    path_ = path;
    auto socket = host::listen_at(path, SOCK_STREAM, 0177);
    if (!socket) return std::unexpected(socket.error());
    socket_ = std::move(*socket);
    sd_event_source* source = nullptr;
    int status = sd_event_add_io(event_, &source, socket_.get(), EPOLLIN, on_connect, this);
    accept_.reset(source);
    // While no descriptor is left, the socket stays readable: the loop must not spin over it.
    if (status >= 0)
        status = sd_event_source_set_ratelimit(source, accept_interval_usec, accepts_an_interval);
    if (status < 0) return fail("cannot serve the control socket", path, -status);
    return {};
}

void Server::PrivateSocket::take(Request request) {
    const auto* bus = sd_bus_message_get_bus(request.call.message());
    const auto peer = std::ranges::find(peers_, bus, [](const BusPeer& one) { return one.bus.get(); });
    if (peer != peers_.end()) request.call.send_through(peer->outbox);
    runner_.run(std::move(request));
}

int Server::PrivateSocket::on_connect(sd_event_source*, int fd, std::uint32_t, void* userdata) {
    host::Fd connection(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection && is_of_privileged(connection))
        static_cast<PrivateSocket*>(userdata)->admit(std::move(connection));
    return 0;
}

void Server::PrivateSocket::admit(host::Fd connection) {
    std::erase_if(peers_, [](const BusPeer& peer) { return sd_bus_is_open(peer.bus.get()) <= 0; });
    if (peers_.size() >= most_peers) peers_.pop_front();
    sd_bus* bus = nullptr;
    if (sd_bus_new(&bus) < 0) return;
    auto& peer = peers_.emplace_back();
    peer.bus.reset(bus);
    peer.outbox = std::make_shared<Outbox>(event_, bus, most_calls, [bus] { sd_bus_close(bus); });
    const int fd = connection.get();
    int status = sd_bus_set_fd(bus, fd, fd);
    if (status >= 0) static_cast<void>(connection.release()); // the bus's from here on
    if (status >= 0) status = prepare(peer);
    if (status < 0) peers_.pop_back();
}

int Server::PrivateSocket::prepare(BusPeer& peer) {
    sd_bus* bus = peer.bus.get();
    sd_id128_t id{};
    sd_id128_randomize(&id);
    int status = sd_bus_set_server(bus, 1, id);
    if (status >= 0) status = sd_bus_set_connected_signal(bus, 1);
    if (status >= 0) status = sd_bus_add_filter(bus, nullptr, on_peers_message, &peer);
    if (status >= 0) status = add_manager_object(bus, *this);
    if (status >= 0) status = sd_bus_start(bus);
    if (status >= 0) status = sd_bus_attach_event(bus, event_, SD_EVENT_PRIORITY_NORMAL);
    return status;
}

Server::Server(core::Commands& commands, Hooks hooks, Buses buses, const Limits& limits)
    : buses_(buses), runner_(commands, std::move(hooks.measure)),
      front_(std::make_unique<BusFront>(runner_, buses.calls, limits)) {}

Server::~Server() {
    buses_.answers.stop();
    buses_.calls.stop();
}

Result<std::unique_ptr<Server>> Server::start(sd_event* event, const std::string& runtime_dir,
                                              core::Commands& commands, Hooks hooks, Buses buses,
                                              const Limits& limits) {
    auto note = hooks.note;
    auto server = std::make_unique<Server>(commands, std::move(hooks), buses, limits);
    server->socket_ = std::make_unique<PrivateSocket>(event, server->runner_);
    if (auto done = server->socket_->listen(socket_path(runtime_dir)); !done)
        return std::unexpected(done.error());
    auto* front = server->front_.get();
    const auto lost = [front] { front->forget(); };
    const auto serve = [front](sd_bus* bus, std::shared_ptr<Outbox> outbox) {
        return front->serve(bus, std::move(outbox));
    };
    buses.answers.start(event, bus_name, {serve, lost, std::move(note)});
    buses.calls.start(event, "", {{}, lost, {}}); // what there is to say of a bus, the first one says
    return server;
}

} // namespace affinityd::control
