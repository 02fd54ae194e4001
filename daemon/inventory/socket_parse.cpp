// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "inventory/sockets.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>

namespace affinityd::inventory {

namespace {

constexpr unsigned tcp_established = 1; // include/net/tcp_states.h, the same numbers in both interfaces
constexpr unsigned tcp_close = 7;
constexpr unsigned tcp_listen = 10;

SocketState state_of(Protocol protocol, unsigned number) {
    if (number == tcp_established) return SocketState::established;
    if (number == (protocol == Protocol::tcp ? tcp_listen : tcp_close)) return SocketState::listen;
    return SocketState::other;
}

using Bytes = std::array<std::uint8_t, 16>;

bool is_mapped_ipv4(const Bytes& address) {
    return std::all_of(address.begin(), address.begin() + 10, [](auto b) { return b == 0; }) &&
           address[10] == 0xff && address[11] == 0xff;
}

bool is_zero(const Bytes& address, std::size_t length) {
    return std::all_of(address.begin(), address.begin() + static_cast<std::ptrdiff_t>(length),
                       [](auto b) { return b == 0; });
}

std::string text_of(const Bytes& address, bool is_ipv6) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const bool mapped = is_ipv6 && is_mapped_ipv4(address);
    const void* bytes = mapped ? address.data() + 12 : address.data();
    ::inet_ntop(is_ipv6 && !mapped ? AF_INET6 : AF_INET, bytes, text.data(), text.size());
    return text.data();
}

void set_addresses(LocalSocket& socket, const Bytes& local, const Bytes& remote, bool is_ipv6) {
    const std::size_t length = is_ipv6 ? 16 : 4;
    socket.local = text_of(local, is_ipv6);
    socket.any_address = is_zero(local, length) || socket.local == "0.0.0.0"; // also ::ffff:0.0.0.0
    if (!is_zero(remote, length)) socket.remote = text_of(remote, is_ipv6);
}

/// Bytes both ways out of the attribute INET_DIAG_INFO, 0 if the kernel's struct tcp_info is too short to
/// have them.
std::uint64_t bytes_of(std::span<const std::byte> info) {
    constexpr auto at = offsetof(tcp_info, tcpi_bytes_acked);
    static_assert(offsetof(tcp_info, tcpi_bytes_received) == at + sizeof(std::uint64_t));
    std::array<std::uint64_t, 2> both{};
    if (info.size() < at + sizeof both) return 0;
    std::memcpy(both.data(), info.data() + at, sizeof both);
    return both[0] + both[1];
}

void read_attributes(std::span<const std::byte> rest, LocalSocket& socket) {
    while (rest.size() >= sizeof(rtattr)) {
        rtattr head{};
        std::memcpy(&head, rest.data(), sizeof head);
        if (head.rta_len < sizeof head || head.rta_len > rest.size()) return;
        if (head.rta_type == INET_DIAG_INFO)
            socket.bytes = bytes_of(rest.subspan(sizeof head, head.rta_len - sizeof head));
        rest = rest.subspan(std::min<std::size_t>(rest.size(), RTA_ALIGN(head.rta_len)));
    }
}

/// "0100007F:1F90": 32-bit words of the address in the machine's byte order, the port as a number.
bool parse_endpoint(std::string_view text, Bytes& address, std::uint16_t& port, bool& is_ipv6) {
    const auto colon = text.find(':');
    if (colon != 8 && colon != 32) return false;
    is_ipv6 = colon == 32;
    for (std::size_t i = 0; i < colon / 8; ++i) {
        const auto word = text.substr(i * 8, 8);
        std::uint32_t value = 0;
        const auto [end, status] = std::from_chars(word.data(), word.data() + 8, value, 16);
        if (status != std::errc{} || end != word.data() + 8) return false;
        std::memcpy(address.data() + i * 4, &value, 4);
    }
    const auto digits = text.substr(colon + 1);
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), port, 16);
    return !digits.empty() && status == std::errc{} && end == digits.data() + digits.size();
}

} // namespace

std::optional<LocalSocket> parse_inet_diag(std::span<const std::byte> message, Protocol protocol) {
    inet_diag_msg head{};
    if (message.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, message.data(), sizeof head);
    if (head.idiag_family != AF_INET && head.idiag_family != AF_INET6) return std::nullopt;
    LocalSocket socket;
    socket.inode = head.idiag_inode;
    socket.protocol = protocol;
    socket.state = state_of(protocol, head.idiag_state);
    socket.port = ntohs(head.id.idiag_sport);
    socket.remote_port = ntohs(head.id.idiag_dport);
    socket.interface = head.id.idiag_if;
    Bytes local{};
    Bytes remote{};
    std::memcpy(local.data(), head.id.idiag_src, local.size());
    std::memcpy(remote.data(), head.id.idiag_dst, remote.size());
    set_addresses(socket, local, remote, head.idiag_family == AF_INET6);
    read_attributes(message.subspan(std::min<std::size_t>(message.size(), NLMSG_ALIGN(sizeof head))), socket);
    return socket;
}

std::optional<LocalSocket> parse_net_line(std::string_view line, Protocol protocol) {
    // sl: local remote state queues timer retransmits uid timeout inode ...
    const auto words = split_words(line);
    if (words.size() < 10 || !words[0].ends_with(':')) return std::nullopt;
    LocalSocket socket;
    socket.protocol = protocol;
    Bytes local{};
    Bytes remote{};
    bool is_ipv6 = false;
    if (!parse_endpoint(words[1], local, socket.port, is_ipv6)) return std::nullopt;
    if (!parse_endpoint(words[2], remote, socket.remote_port, is_ipv6)) return std::nullopt;
    unsigned state = 0;
    const auto [end, status] = std::from_chars(words[3].data(), words[3].data() + words[3].size(), state, 16);
    const auto inode = parse_number<std::uint64_t>(words[9]);
    if (status != std::errc{} || end != words[3].data() + words[3].size() || !inode) return std::nullopt;
    socket.state = state_of(protocol, state);
    socket.inode = *inode;
    set_addresses(socket, local, remote, is_ipv6);
    return socket;
}

} // namespace affinityd::inventory
