// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "control/command_runner.hpp"
#include "control/handles.hpp"
#include "control/manager_object.hpp"
#include "control/outbox.hpp"
#include "host/fd.hpp"

#include <chrono>
#include <list>
#include <memory>
#include <string>

namespace affinityd::control {

/// The object on a socket of the daemon's own, which only root can connect to and which needs no message bus.
/// Up to 64 peers are served; when another comes, the one that was silent longest makes room. Who waits for
/// the end of a pass is silent, too, and makes room last.
class PrivateSocket final : public Front {
  public:
    struct Limits {
        std::size_t peers = 64;
        std::chrono::milliseconds authentication{
            1000};                       ///< from the connection to the end of the D-Bus handshake
        Outbox::Limits outbox{64 << 20}; ///< of all peers together
    };
    /// Binds and listens. `event` and `runner` must outlive this.
    static Result<std::unique_ptr<PrivateSocket>> start(sd_event* event, std::string path,
                                                        CommandRunner& runner, Limits limits);
    /// For start().
    PrivateSocket(sd_event* event, std::string path, CommandRunner& runner, Limits limits, host::Fd socket);
    PrivateSocket(const PrivateSocket&) = delete;
    PrivateSocket& operator=(const PrivateSocket&) = delete;
    ~PrivateSocket() override;

    void take(Request request) override;

  private:
    using Clock = std::chrono::steady_clock;
    struct Peer {
        Bus bus;
        Clock::time_point heard{}; ///< when it connected, or last called
        bool is_authenticated = false;
        Source deadline; ///< of the authentication
        Source rest;     ///< of what came in together with the end of the handshake
        std::shared_ptr<Outbox> outbox{};
    };
    [[nodiscard]] int listen();
    void admit(host::Fd connection);
    [[nodiscard]] int prepare(Peer& peer);
    static void read_rest(Peer& peer);
    void make_room();
    static int on_connect(sd_event_source*, int fd, std::uint32_t, void* userdata);
    static int on_end(sd_event_source*, void* userdata);
    static int on_message(sd_bus_message*, void* userdata, sd_bus_error*);
    static int on_rest(sd_event_source*, void* userdata);
    static int on_deadline(sd_event_source*, std::uint64_t, void* userdata);

    sd_event* event_;
    std::string path_;
    CommandRunner& runner_;
    Limits limits_;
    host::Fd socket_;
    std::shared_ptr<Outbox::Group> unread_;
    std::list<Peer> peers_;
    Source accept_, end_;
};

} // namespace affinityd::control
