// SPDX-License-Identifier: Apache-2.0
#include "control/server.hpp"

namespace affinityd::control {

std::string socket_path(const std::string& runtime_dir) { return runtime_dir + "/control"; }

Result<std::unique_ptr<Server>> Server::start(sd_event* event, const std::string& runtime_dir,
                                              app::Commands& commands, Hooks hooks, SystemBus& bus,
                                              Limits limits) {
    auto note = hooks.note;
    auto server = std::make_unique<Server>(event, commands, std::move(hooks), bus, limits);
    auto socket = PrivateSocket::start(event, socket_path(runtime_dir), server->runner_, limits.socket);
    if (!socket) return std::unexpected(socket.error());
    server->socket_ = std::move(*socket);
    bus.start(
        event, bus_name,
        {[front = &server->front_](sd_bus* connection) { return add_manager_object(connection, *front); },
         [front = &server->front_] { front->forget(); }, std::move(note)});
    return server;
}

Server::Server(sd_event* event, app::Commands& commands, Hooks hooks, SystemBus& bus, Limits limits)
    : bus_(bus), runner_(event, commands, std::move(hooks.measure), limits.answers),
      front_(event, runner_, std::move(limits.bus)) {}

Server::~Server() { bus_.stop(); }

} // namespace affinityd::control
