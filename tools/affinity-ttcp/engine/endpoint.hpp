// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace affinityd::ttcp {

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
