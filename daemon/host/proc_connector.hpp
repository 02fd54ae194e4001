// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

struct nl_sock;

namespace affinityd::host {

/// One event of the kernel's process connector. Ids are those of the initial PID namespace.
struct ProcEvent {
    enum class Kind { fork, exec, comm, exit, other };
    Kind kind = Kind::other;
    int pid = 0;        ///< process (tgid) it happened to; of a fork: the new one's
    int tid = 0;        ///< its thread; equal to pid for the main thread
    int parent_pid = 0; ///< fork: process that forked
};

/// Reads one netlink datagram's connector messages; hostile bytes give no event. Source: include/uapi/linux/cn_proc.h.
void parse_proc_events(std::span<const std::byte> datagram, const std::function<void(const ProcEvent&)>& sink);

/// The process connector: a netlink socket, subscribed, with a kernel-side filter so that events nobody asked for do not
/// wake us. Needs CAP_NET_ADMIN and the initial namespaces. Source: Documentation/driver-api/connector.rst.
class ProcConnector {
  public:
    /// Exec and renames are always wanted.
    struct Wanted {
        bool thread_forks = false; ///< births of threads, and of processes
        bool exits = false;
    };
    static Result<ProcConnector> open();

    [[nodiscard]] int fd() const;
    /// Changes the kernel-side filter.
    void set_filter(Wanted wanted);

    struct Drained {
        std::size_t events = 0;
        bool lost = false; ///< the socket's buffer overflowed: some events will never come
    };
    /// Hands over what is there without waiting, in order, bounded so that a storm does not keep the caller for ever.
    Drained drain(const std::function<void(const ProcEvent&)>& sink);

  private:
    struct Free {
        void operator()(nl_sock* socket) const;
    };
    explicit ProcConnector(std::unique_ptr<nl_sock, Free> socket);
    std::unique_ptr<nl_sock, Free> socket_;
    std::vector<std::byte> buffer_;
};

} // namespace affinityd::host
