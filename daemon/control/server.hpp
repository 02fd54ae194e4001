// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "base/error.hpp"
#include "control/bus_front.hpp"
#include "control/private_socket.hpp"
#include "control/system_bus.hpp"

#include <functional>
#include <memory>
#include <string>

namespace affinityd::control {

/// Path of the private socket in a runtime directory.
[[nodiscard]] std::string socket_path(const std::string& runtime_dir);

/// Serves the interface org.affinityd.Manager1 at /org/affinityd: in full on the private socket (root and the
/// daemon's own user; works without a message bus), and on the system bus as org.affinityd, where everybody
/// may read what concerns the machine and what changes something asks polkit (org.affinityd.manage).
class Server {
  public:
    /// What is not a command of the manager.
    struct Hooks {
        CommandRunner::Measure measure;
        /// One sentence for the log, when the daemon joins or leaves the system bus.
        std::function<void(const std::string&)> note;
    };

    /// The daemon's two connections to the message bus. Over `calls` it asks others, such as polkit; what
    /// callers do to the one with answers does not reach it.
    struct Buses {
        SystemBus& answers;
        SystemBus& calls;
    };

    /// Binds the socket, joins the bus and begins to serve from the loop. `event`, `commands` and `buses`
    /// must outlive the server. That there is no message bus is no fault.
    static Result<std::unique_ptr<Server>> start(sd_event* event, const std::string& runtime_dir,
                                                 app::Commands& commands, Hooks hooks, Buses buses,
                                                 const BusFront::Limits& limits);
    /// For start().
    Server(app::Commands& commands, Hooks hooks, Buses buses, const BusFront::Limits& limits);
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server();

  private:
    Buses buses_;
    CommandRunner runner_;
    BusFront front_;
    std::unique_ptr<PrivateSocket> socket_;
};

} // namespace affinityd::control
