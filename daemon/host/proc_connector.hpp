// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/proc_event.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace affinityd::host {

/// A subscription to the kernel's process events (netlink connector, CN_IDX_PROC). What is not wanted is
/// dropped in the kernel: by event mask where it has one (Linux 6.6 on), and by a socket filter everywhere,
/// so that it wakes nobody. Needs CAP_NET_ADMIN and the initial pid and user namespace;
/// Documentation/driver-api/connector.rst.
class ProcConnector {
  public:
    struct Wanted {
        bool thread_forks = false;
        bool process_forks =
            false; ///< only a child that never execs needs them: it carries its parent's name and mask
        bool exits = false; ///< of processes (their main thread)
        bool thread_exits = false;
        bool execs = true;
        bool renames = true; ///< of processes and threads
    };

    /// What one call of drain() met.
    struct Drained {
        std::size_t events = 0;
        bool lost = false; ///< the kernel dropped events since the last call (ENOBUFS): scan everything
        bool more = false; ///< stopped at `most_events`; the descriptor stays readable
        int error = 0;     ///< errno of a socket that no longer works, else 0
    };
    static constexpr std::size_t most_events = 1024; ///< per call, so that a storm leaves time for other work

    /// Subscribed when it returns: whatever happens to a process from now on is reported or counted as lost.
    static Result<ProcConnector> open(Wanted wanted);
    static Result<ProcConnector> open() { return open(Wanted{}); }
    ProcConnector(ProcConnector&&) noexcept;
    ProcConnector& operator=(ProcConnector&&) noexcept;
    ~ProcConnector();

    /// Non-blocking; readable (EPOLLIN, or EPOLLERR after a loss) when drain() has something to do.
    [[nodiscard]] int fd() const;
    /// True if something is queued now.
    [[nodiscard]] bool has_events() const;
    /// Changes what is reported from now on; what is already queued still comes. On an Error the old filter
    /// stands.
    Result<void> set_filter(Wanted wanted);
    /// Hands on everything that is queued. Messages that do not come from the kernel are dropped. No
    /// allocation.
    Drained drain(const std::function<void(const ProcEvent&)>& sink);

  private:
    struct Connection;
    explicit ProcConnector(std::unique_ptr<Connection> connection);
    std::unique_ptr<Connection> connection_;
};

} // namespace affinityd::host
