// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/daemon.hpp"
#include "base/error.hpp"
#include "events/measurement.hpp"
#include "events/sources.hpp"

#include <functional>
#include <memory>

namespace affinityd::events {

/// The one event loop. Its sources only say what happened; the manager decides. A full pass runs as an
/// idle-priority source in slices, so that an event never waits behind more than one of them.
class Loop {
  public:
    /// Both must outlive the loop. `is_restarted` is asked once, at SIGTERM: true leaves all masks in place
    /// for the next daemon.
    static Result<std::unique_ptr<Loop>> create(app::Daemon& manager, app::Log& log,
                                                std::function<bool()> is_restarted);
    virtual ~Loop() = default;
    /// Keeps signals for the loop. The first thing in main: one that comes while the daemon starts must not
    /// end it half-way.
    static void block_signals();

    [[nodiscard]] virtual sd_event* event() const = 0;
    /// Subscribes to everything, then begins the first pass: what happens in between is not missed. Sends
    /// READY=1 to the service manager when that pass is through.
    [[nodiscard]] virtual Result<void> subscribe() = 0;
    /// Measures now; the answer is an Error if a measurement is running or none can be started.
    virtual void measure(app::Answer answer, app::Until until) = 0;
    /// Runs until SIGTERM or SIGINT; the process's exit code.
    [[nodiscard]] virtual int run() = 0;
};

} // namespace affinityd::events
