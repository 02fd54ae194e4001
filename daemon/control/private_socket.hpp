// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "control/handles.hpp"
#include "control/requests.hpp"
#include "host/fd.hpp"

#include <chrono>
#include <list>
#include <memory>
#include <string>

namespace affinityd::control {

/// The object on a socket of the daemon's own, which only root can connect to and which needs no message bus.
/// Up to 64 peers are served; when another comes, the one that was silent longest makes room. A peer with
/// more than four calls that are not answered, or answers that it has not taken, is disconnected.
class PrivateSocket final : public Front {
  public:
    /// Binds and listens. `event` and `runner` must outlive this.
    static Result<std::unique_ptr<PrivateSocket>> start(sd_event* event, std::string path,
                                                        CommandRunner& runner);
    /// For start().
    PrivateSocket(sd_event* event, std::string path, CommandRunner& runner, host::Fd socket)
        : event_(event), path_(std::move(path)), runner_(runner), socket_(std::move(socket)) {}
    PrivateSocket(const PrivateSocket&) = delete;
    PrivateSocket& operator=(const PrivateSocket&) = delete;
    ~PrivateSocket() override;

    void take(Request request) override;

  private:
    using Clock = std::chrono::steady_clock;
    struct Peer {
        Bus bus;
        Clock::time_point heard{}; ///< when it connected, or last called
        Source rest;               ///< of what came in together with the end of the handshake
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

    sd_event* event_;
    std::string path_;
    CommandRunner& runner_;
    host::Fd socket_;
    std::list<Peer> peers_;
    Source accept_, end_;
};

} // namespace affinityd::control
