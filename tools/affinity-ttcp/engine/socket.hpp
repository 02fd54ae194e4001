// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <netdb.h>

namespace affinityd::ttcp {

/// Where a peer is. Names are resolved when the address is used.
struct Address {
    std::string host;                            ///< a name or an address in numbers; "": every local address
    std::string port;                            ///< decimal or a service name
    [[nodiscard]] std::string to_string() const; ///< "host:port", "[::1]:port"
};

/// "host", "host:port", "[v6]:port", "v6" without port; `port` where the text has none.
[[nodiscard]] Result<Address> parse_address(std::string_view text, std::string_view port);

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// getaddrinfo(3) for a socket of this type (SOCK_STREAM, SOCK_DGRAM); waits for the resolver.
[[nodiscard]] Result<AddressList> look_up(const Address& address, int type, bool to_listen = false);

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

/// The port a socket is bound to, 0 if none.
[[nodiscard]] std::uint16_t port_of(int socket);

/// The local address in numbers, "" if unknown.
[[nodiscard]] std::string address_of(int socket);

/// The address of a connection's other end in numbers with its port, "" if unknown.
[[nodiscard]] std::string peer_of(int socket);

/// Both ends of a connection have the same address, or one of the loopback network: its packets pass no NIC.
[[nodiscard]] bool is_local(int socket);

/// False: the interface with the socket's own address has gone, is down or has no carrier.
[[nodiscard]] bool has_link(int socket);

} // namespace affinityd::ttcp
