// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <linux/filter.h>

namespace affinityd::host {

/// An event of the kernel's process connector; linux/cn_proc.h, drivers/connector/cn_proc.c. Numbers are
/// those of the initial pid namespace and greater than 0.
struct ProcEvent {
    enum class Kind : std::uint8_t {
        fork, ///< a process or a thread was born; it still has its parent's name and mask
        exec, ///< the thread that called it has become the main thread
        ids,  ///< a thread has another user or group: setuid(2), setgid(2) and their kin
        comm, ///< named by prctl(PR_SET_NAME) or a write to its comm file; not by exec
        exit
    };
    Kind kind = Kind::fork;
    int pid = 0;          ///< process (tgid) it happened to; of a fork: the new one's
    int tid = 0;          ///< its thread; equal to pid for the main thread
    std::uint64_t at = 0; ///< ns of the monotonic clock, as the kernel saw it
    int parent_pid = 0;   ///< fork: process that forked; exit: the parent process, where the kernel tells it
    std::array<char, 16> name{}; ///< comm: the new name, any bytes, NUL-terminated unless full

    [[nodiscard]] std::string_view comm() const;
    [[nodiscard]] bool is_thread() const { return pid != tid; }
    friend bool operator==(const ProcEvent&, const ProcEvent&) = default;
};

/// Reads a datagram of the connector: netlink header, cn_msg, proc_event. Every length is checked. No value:
/// another message, another kind of event, or cut short.
[[nodiscard]] std::optional<ProcEvent> parse_proc_event(std::span<const std::byte> datagram);

/// The connector's answer to a subscription: the request's acknowledgement number plus one, and an errno
/// value (0 granted).
struct ProcAck {
    std::uint32_t number = 0;
    std::uint32_t error = 0;
};
[[nodiscard]] std::optional<ProcAck> parse_proc_ack(std::span<const std::byte> datagram);

/// A subscription to the kernel's process events (netlink connector, CN_IDX_PROC). All others are
/// dropped in the kernel: by event mask where it has one (Linux 6.6 on), and by a socket filter everywhere,
/// so that it wakes no process. Renames, of which a user can make a million a second, have a socket of their
/// own, so that they take no room from other events, and come after these. Needs CAP_NET_ADMIN and the
/// initial pid and user namespace; Documentation/driver-api/connector.rst.
class ProcConnector {
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

    /// The findings of one call of drain().
    struct Drained {
        std::size_t events = 0;
        bool lost = false; ///< the kernel dropped events since the last call (ENOBUFS): scan everything
        bool more = false; ///< stopped early; call again, the descriptor may not be readable for what is left
        int error = 0;     ///< errno of a socket that no longer works, else 0
    };
    static constexpr std::size_t most_events = 1024; ///< per call, so that a storm leaves time for other work

    /// Subscribed when it returns: whatever happens to a process from now on is reported or counted as lost.
    static Result<std::unique_ptr<ProcConnector>> open(const Wanted& wanted);
    ProcConnector(const ProcConnector&) = delete;
    ProcConnector& operator=(const ProcConnector&) = delete;
    ~ProcConnector();

    /// Non-blocking; readable (EPOLLIN, or EPOLLERR after a loss) when drain() has something to do.
    [[nodiscard]] int fd() const;
    /// True if something is queued now.
    [[nodiscard]] bool has_events() const;
    /// Changes the events that are reported from now on; events in the queue still come. After an Error the
    /// old filter is in force.
    [[nodiscard]] Result<void> set_filter(const Wanted& wanted);
    /// Hands on what is queued, in order; asks `out_of_time` after each event, but for one that came alone.
    /// Messages that do not come from the kernel are dropped. No allocation.
    Drained drain(const std::function<void(const ProcEvent&)>& sink,
                  const std::function<bool()>& out_of_time);

  private:
    struct Connection;
    ProcConnector();
    std::array<std::unique_ptr<Connection>, 2> connections_; ///< the second: of renames
    Fd both_;                                                ///< epoll of them
};

/// Socket filter (classic BPF) that lets only the wanted process events through; it sees a datagram from its
/// netlink header on. Documentation/networking/filter.rst.
[[nodiscard]] std::vector<sock_filter> proc_event_filter(const ProcConnector::Wanted& wanted);

/// The same for kernels with an event mask, which cannot tell threads from processes: PROC_EVENT_ bits.
[[nodiscard]] std::uint32_t proc_event_mask(const ProcConnector::Wanted& wanted);

} // namespace affinityd::host
