// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/netlink.hpp"
#include "inventory/listener_filter.hpp"
#include "inventory/local_socket.hpp"

#include <functional>
#include <span>

namespace affinityd::inventory {

enum class Wanted : std::uint8_t {
    listeners, ///< sockets that listen
    all        ///< and those that are connected
};

/// The kernel's list of the sockets of one protocol and address family in this process's network namespace,
/// by sock_diag(7), one datagram (some hundred sockets) at a time. Between two calls the kernel keeps its
/// place.
class SocketDump {
  public:
    /// `family`: AF_INET or AF_INET6. `ports`: others are passed over within the kernel, but for some between
    /// these if they are many; none: all count.
    static Result<SocketDump> open(Protocol protocol, int family, Wanted wanted,
                                   const PortRanges& ports = {});

    enum class Step {
        more,
        end,
        interrupted, ///< the list changed while it was read: what came is incomplete
        refused      ///< this kernel has no sock_diag for it
    };
    /// Hands on the next sockets. The answer is in the socket's queue already: the kernel fills it while it
    /// is being read.
    Result<Step> next(const std::function<void(const LocalSocket&)>& take);

    /// What one datagram of the kernel holds. `is_interrupted`: some datagram of the list has said so; kept
    /// by the caller from one to the next.
    [[nodiscard]] static Step read(std::span<unsigned char> datagram, Protocol protocol, bool& is_interrupted,
                                   const std::function<void(const LocalSocket&)>& take);

  private:
    SocketDump(host::NetlinkSocket socket, Protocol protocol)
        : socket_(std::move(socket)), protocol_(protocol) {}
    host::NetlinkSocket socket_;
    Protocol protocol_;
    bool is_interrupted_ = false;
};

} // namespace affinityd::inventory
