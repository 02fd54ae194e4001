// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace affinityd::measure {

/// Where a peer is. Names are looked up when used.
struct Address {
    std::string host;
    std::string port;                            ///< decimal or a service name
    [[nodiscard]] std::string to_string() const; ///< "host:port", "[::1]:port"
};

/// "host", "host:port", "[v6]:port", "v6" without port; `port` where none is given.
[[nodiscard]] Result<Address> parse_address(std::string_view text, std::string_view port);

struct SocketOptions {
    bool nodelay = false; ///< TCP_NODELAY, tcp(7)
    int buffer_bytes = 0; ///< SO_SNDBUF and SO_RCVBUF, socket(7); 0: the kernel's own sizing
    std::string source;   ///< local address to connect from; "": the kernel chooses
};

/// A connected, blocking TCP socket, or why not within the time. The Error's code tells a refusal from a
/// missing route.
[[nodiscard]] Result<host::Fd> connect_to(const Address& address, const SocketOptions& options,
                                          double seconds);

/// A listening, non-blocking TCP socket; host "" is every address, port "0" any free one.
[[nodiscard]] Result<host::Fd> listen_at(const Address& address, const SocketOptions& options,
                                         unsigned backlog);

/// The next connection as a blocking socket; several processes may wait at one listener. seconds 0: without
/// limit.
[[nodiscard]] Result<host::Fd> accept_from(int listener, double seconds);

/// The port a socket is bound to, 0 if none.
[[nodiscard]] std::uint16_t port_of(int socket);

/// The local address in numbers, "" if unknown.
[[nodiscard]] std::string address_of(int socket);

/// The address of a connection's other end in numbers with its port, "" if unknown.
[[nodiscard]] std::string peer_of(int socket);

/// Both ends of a connection have the same address, or one of the loopback network's: no NIC is on the way.
[[nodiscard]] bool is_local(int socket);

/// False: the interface with the socket's own address has gone, is down or has no carrier.
[[nodiscard]] bool has_link(int socket);

} // namespace affinityd::measure
