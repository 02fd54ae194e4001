// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/bus.hpp"
#include "control/calls.hpp"
#include "control/polkit.hpp"

#include <functional>
#include <memory>
#include <string>

#include <sys/types.h>

namespace affinityd::control {

/// True for users who may do everything: root, and the daemon's own.
[[nodiscard]] bool is_privileged_user(uid_t user);

/// Path of the private socket in a runtime directory.
[[nodiscard]] std::string socket_path(const std::string& runtime_dir);

/// Serves the interface org.affinityd.Manager1 at /org/affinityd: in full on the private socket (root and the
/// daemon's own user; works without a message bus), and on the system bus as org.affinityd, where all users
/// may read about the machine, and calls that change something ask polkit (org.affinityd.manage).
class Server {
  public:
    /// The parts that are no commands of the manager.
    struct Hooks {
        CommandRunner::Measure measure;
        /// Takes a sentence for the log when the daemon joins or leaves the system bus.
        std::function<void(const std::string&)> note;
    };
    /// The daemon's two connections to the message bus. A message bus counts an answer that its receiver does
    /// not read as its sender's, and takes nothing more from a sender with too much of it: so the daemon asks
    /// others, such as polkit, over `calls`.
    struct Buses {
        SystemBus& answers;
        SystemBus& calls;
    };
    struct Limits {
        Polkit::Limits polkit{};
        std::function<bool(uid_t)> is_privileged = is_privileged_user;
        /// Takes a question from the budget of its user; false: it is spent.
        std::function<bool(uid_t)> may_ask = [](uid_t) { return true; };
    };

    /// Binds the socket, joins the bus and begins to serve from the loop. `event`, `commands` and `buses`
    /// must outlive the server. A missing message bus is no fault.
    static Result<std::unique_ptr<Server>> start(sd_event* event, const std::string& runtime_dir,
                                                 core::Commands& commands, Hooks hooks, Buses buses,
                                                 const Limits& limits);
    /// For start().
    Server(core::Commands& commands, Hooks hooks, Buses buses, const Limits& limits);
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server();

  private:
    class BusFront;
    class PrivateSocket;
    Buses buses_;
    CommandRunner runner_;
    std::unique_ptr<BusFront> front_;
    std::unique_ptr<PrivateSocket> socket_;
};

} // namespace affinityd::control
