// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "base/error.hpp"

#include <functional>
#include <memory>
#include <string>

struct sd_event;

namespace affinityd::control {

/// Path of the private socket in a runtime directory.
[[nodiscard]] std::string socket_path(const std::string& runtime_dir);

/// The daemon's voice: the interface org.affinityd.Manager1 at /org/affinityd on the private socket (root and
/// the daemon's own user; works without a message bus) and, where there is one, on the system bus as
/// org.affinityd. Reading is open to everybody there; what changes something asks polkit
/// (org.affinityd.manage).
class Server {
  public:
    /// What the loop does when told to; the rest is answered by `commands`.
    struct Hooks {
        std::function<Result<void>()>
            measure; ///< starts a measurement now; an Error if one is running or it cannot
    };

    /// Binds the socket and begins to serve from the loop. `event` and `commands` must outlive the server.
    /// That no message bus is there is no fault.
    static Result<std::unique_ptr<Server>> start(sd_event* event, const std::string& runtime_dir,
                                                 app::Commands& commands, Hooks hooks);
    virtual ~Server() = default;

    /// Why the system bus is not served; "" if it is.
    [[nodiscard]] virtual const std::string& bus_fault() const = 0;
};

} // namespace affinityd::control
