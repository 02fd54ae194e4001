// SPDX-License-Identifier: Apache-2.0
#include "control/server.hpp"

#include <utility>

namespace affinityd::control {

std::string socket_path(const std::string& runtime_dir) { return runtime_dir + "/control"; }

Result<std::unique_ptr<Server>> Server::start(sd_event* event, const std::string& runtime_dir,
                                              app::Commands& commands, Hooks hooks, Buses buses,
                                              const BusFront::Limits& limits) {
    auto note = hooks.note;
    auto server = std::make_unique<Server>(commands, std::move(hooks), buses, limits);
    auto socket = PrivateSocket::start(event, socket_path(runtime_dir), server->runner_);
    if (!socket) return std::unexpected(socket.error());
    server->socket_ = std::move(*socket);
    auto* front = &server->front_;
    const auto lost = [front] { front->forget(); };
    buses.answers.start(event, bus_name,
                        {[front](sd_bus* bus, std::shared_ptr<Outbox> outbox) {
                             return front->serve(bus, std::move(outbox));
                         },
                         lost, std::move(note)});
    buses.calls.start(event, "", {{}, lost, {}}); // what there is to say of a bus, the first one says
    return server;
}

Server::Server(app::Commands& commands, Hooks hooks, Buses buses, const BusFront::Limits& limits)
    : buses_(buses), runner_(commands, std::move(hooks.measure)),
      front_(
          runner_, [&bus = buses.calls] { return bus.connection(); }, limits) {}

Server::~Server() {
    buses_.answers.stop();
    buses_.calls.stop();
}

} // namespace affinityd::control
