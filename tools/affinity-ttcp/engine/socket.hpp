// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/address.hpp"
#include "base/error.hpp"
#include "host/fd.hpp"

#include <string>

namespace affinityd::ttcp {

struct SocketOptions {
    bool nodelay = false; ///< TCP_NODELAY, tcp(7)
    int buffer_bytes = 0; ///< SO_SNDBUF and SO_RCVBUF, socket(7); 0: the kernel's own sizing
    std::string source;   ///< local address to connect from; "": the kernel chooses
};

/// A connected, blocking TCP socket. An Error's code tells a refusal, a missing route and ETIMEDOUT apart.
[[nodiscard]] Result<host::Fd> connect_to(const Address& address, const SocketOptions& options,
                                          double seconds);

/// A listening, non-blocking TCP socket; host "" is every address, port "0" any free one.
[[nodiscard]] Result<host::Fd> listen_at(const Address& address, const SocketOptions& options,
                                         unsigned backlog);

/// The next connection as a blocking socket; several processes may wait at one listener. seconds 0: without
/// limit.
[[nodiscard]] Result<host::Fd> accept_from(int listener, double seconds);

} // namespace affinityd::ttcp
