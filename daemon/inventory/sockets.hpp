// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::inventory {

enum class Protocol : std::uint8_t { tcp, udp };
enum class SocketState : std::uint8_t { listen, established, other };

/// One TCP or UDP socket with a local port. Addresses as text ("192.0.2.1", "2001:db8::1"); IPv4 in IPv6 is
/// written as IPv4.
struct LocalSocket {
    std::uint64_t inode =
        0; ///< what /proc/PID/fd shows as "socket:[N]"; 0: no process has it open (any more)
    Protocol protocol = Protocol::tcp;
    SocketState state = SocketState::other; ///< a UDP socket without a peer listens
    std::string local;
    std::uint16_t port = 0; ///< local, host byte order
    std::string remote;     ///< "" without a peer
    std::uint16_t remote_port = 0;
    unsigned interface = 0;   ///< ifindex it is bound to (SO_BINDTODEVICE), 0 none
    bool any_address = false; ///< local is 0.0.0.0 or ::, so it takes what comes in by any interface
    std::uint64_t bytes =
        0; ///< TCP: bytes acknowledged and received so far, where the kernel was asked for them
    [[nodiscard]] bool listens() const { return state == SocketState::listen; }
    friend bool operator==(const LocalSocket&, const LocalSocket&) = default;
};

enum class Wanted : std::uint8_t {
    listeners,     ///< those that listen
    all,           ///< and those that are connected
    all_with_bytes ///< and how much went over TCP ones; about twice the kernel's work
};

struct SocketList {
    std::vector<LocalSocket> sockets;
    bool truncated = false; ///< there were more than were asked for
};
inline constexpr std::size_t most_sockets = 1U << 18;

/// Sockets of this process's network namespace: sock_diag(7) through libnl on this machine, proc/net of a
/// recording (and where the kernel has no sock_diag). What cannot be read is left out. Of more than `most`
/// (of each kind: TCP, UDP by family) the first are taken: listening ones, then connected ones in the order
/// of the kernel's hash table, which is a random sample.
[[nodiscard]] SocketList read_sockets(const host::Root& root, Wanted wanted, std::size_t most = most_sockets);

/// Listening sockets of the namespace `pid` lives in, by the files /proc/PID/net/{tcp,udp}{,6}.
[[nodiscard]] SocketList read_sockets_of_namespace(const host::Root& root, int pid);

/// False if the process is known to live in another network namespace than this one.
[[nodiscard]] bool shares_network_namespace(const host::Root& root, int pid);

/// Inodes of the sockets that a process has open, at most `most` descriptors of it looked at, lowest first.
/// One readlink(2) for each: only for processes that matter.
[[nodiscard]] std::vector<std::uint64_t> socket_inodes(const host::Root& root, int pid,
                                                       std::size_t most = 65536);

/// One answer of sock_diag: a struct inet_diag_msg with its attributes, linux/inet_diag.h. Nothing:
/// malformed.
[[nodiscard]] std::optional<LocalSocket> parse_inet_diag(std::span<const std::byte> message,
                                                         Protocol protocol);

/// One line of /proc/net/tcp, tcp6, udp or udp6; nothing: the heading or malformed.
[[nodiscard]] std::optional<LocalSocket> parse_net_line(std::string_view line, Protocol protocol);

} // namespace affinityd::inventory
