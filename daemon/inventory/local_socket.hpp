// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/ip_address.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace affinityd::inventory {

enum class Protocol : std::uint8_t { tcp, udp };
enum class SocketState : std::uint8_t { listen, established, other };

/// One TCP or UDP socket with a local port: 32 bytes, because there may be hundreds of thousands.
struct LocalSocket {
    IpAddress local;
    std::uint32_t inode = 0;     ///< what /proc/PID/fd shows as "socket:[N]"; 0: no process has it open
    std::uint32_t interface = 0; ///< ifindex it is bound to (SO_BINDTODEVICE), 0 for none
    std::uint32_t user = 0;      ///< whose it is: who made it
    std::uint16_t port = 0;      ///< local, host byte order
    Protocol protocol = Protocol::tcp;
    SocketState state = SocketState::other; ///< a UDP socket without a peer listens

    [[nodiscard]] bool listens() const { return state == SocketState::listen; }
    friend bool operator==(const LocalSocket&, const LocalSocket&) = default;
};

/// One answer of sock_diag: a struct inet_diag_msg, linux/inet_diag.h. No value: malformed.
[[nodiscard]] std::optional<LocalSocket> parse_inet_diag(std::span<const std::byte> message,
                                                         Protocol protocol);

/// One line of /proc/net/tcp, tcp6, udp or udp6; no value: the heading, or malformed.
[[nodiscard]] std::optional<LocalSocket> parse_net_line(std::string_view line, Protocol protocol);

} // namespace affinityd::inventory
