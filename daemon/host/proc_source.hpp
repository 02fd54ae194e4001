// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/proc_event.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace affinityd::host {

/// Where process events come from: the kernel's connector, or what a test says.
class ProcSource {
  public:
    struct Wanted {
        bool thread_forks = false;
        bool process_forks = false; ///< needed only for children that never exec: they carry their parent's
                                    ///< name and mask
        bool exits = false;         ///< of processes (their main thread)
        bool thread_exits = false;
        bool execs = true;
        bool renames = true; ///< of processes and threads
        bool ids = false;    ///< changes of user and group
        /// Processes of which only execs, forks of processes and the end are reported; at most 16 count.
        std::vector<int> muted{};
        friend bool operator==(const Wanted&, const Wanted&) = default;
    };

    /// What one call of drain() met.
    struct Drained {
        std::size_t events = 0;
        bool lost = false; ///< the kernel dropped events since the last call (ENOBUFS): scan everything
        bool more = false; ///< stopped early; call again, the descriptor may not be readable for what is left
        int error = 0;     ///< errno of a socket that no longer works, else 0
    };
    static constexpr std::size_t most_events = 1024; ///< per call, so that a storm leaves time for other work

    ProcSource() = default;
    ProcSource(const ProcSource&) = delete;
    ProcSource& operator=(const ProcSource&) = delete;
    virtual ~ProcSource() = default;

    /// Non-blocking; readable (EPOLLIN, or EPOLLERR after a loss) when drain() has something to do.
    [[nodiscard]] virtual int fd() const = 0;
    /// True if something is queued now.
    [[nodiscard]] virtual bool has_events() const = 0;
    /// Changes what is reported from now on; what is already queued still comes. After an Error the old
    /// filter is in force.
    [[nodiscard]] virtual Result<void> set_filter(Wanted wanted) = 0;
    /// Hands on what is queued, in order; asks `out_of_time` after each event, but for one that came alone.
    virtual Drained drain(const std::function<void(const ProcEvent&)>& sink,
                          const std::function<bool()>& out_of_time) = 0;
};

} // namespace affinityd::host
