// SPDX-License-Identifier: Apache-2.0
#include "inventory/local_socket.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include <arpa/inet.h>
#include <linux/inet_diag.h>

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

template <class Number>
bool parse_hex(std::string_view text, Number& number) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    return !text.empty() && status == std::errc{} && end == text.data() + text.size();
}

/// "0100007F:1F90": 32-bit words of the address in the machine's byte order, the port as a number.
bool parse_endpoint(std::string_view text, IpAddress& address, std::uint16_t& port) {
    const auto colon = text.find(':');
    if (colon != 8 && colon != 32) return false;
    std::array<std::uint8_t, 16> bytes{};
    for (std::size_t i = 0; i < colon / 8; ++i) {
        std::uint32_t word = 0;
        if (!parse_hex(text.substr(i * 8, 8), word)) return false;
        std::memcpy(bytes.data() + i * 4, &word, 4);
    }
    address = colon == 32 ? IpAddress{bytes} : IpAddress::from_ipv4({bytes[0], bytes[1], bytes[2], bytes[3]});
    return parse_hex(text.substr(colon + 1), port);
}

} // namespace

std::optional<LocalSocket> parse_inet_diag(std::span<const std::byte> message, Protocol protocol) {
    inet_diag_msg head{};
    if (message.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, message.data(), sizeof head);
    if (head.idiag_family != AF_INET && head.idiag_family != AF_INET6) return std::nullopt;
    LocalSocket socket;
    std::memcpy(socket.local.bytes.data(), head.id.idiag_src, socket.local.bytes.size());
    if (head.idiag_family == AF_INET) {
        const auto& bytes = socket.local.bytes;
        socket.local = IpAddress::from_ipv4({bytes[0], bytes[1], bytes[2], bytes[3]});
    }
    socket.inode = head.idiag_inode;
    socket.interface = head.id.idiag_if;
    socket.user = head.idiag_uid;
    socket.port = ntohs(head.id.idiag_sport);
    socket.protocol = protocol;
    socket.state = state_of(protocol, head.idiag_state);
    return socket;
}

std::optional<LocalSocket> parse_net_line(std::string_view line, Protocol protocol) {
    // sl: local remote state queues timer retransmits uid timeout inode ...
    const auto words = split_words(line);
    if (words.size() < 10 || !words[0].ends_with(':')) return std::nullopt;
    LocalSocket socket;
    IpAddress remote;
    std::uint16_t remote_port = 0;
    unsigned state = 0;
    if (!parse_endpoint(words[1], socket.local, socket.port) ||
        !parse_endpoint(words[2], remote, remote_port) || !parse_hex(words[3], state))
        return std::nullopt;
    const auto inode = parse_number<std::uint32_t>(words[9]);
    const auto user = parse_number<std::uint32_t>(words[7]);
    if (!inode || !user) return std::nullopt;
    socket.inode = *inode;
    socket.user = *user;
    socket.protocol = protocol;
    socket.state = state_of(protocol, state);
    return socket;
}

} // namespace affinityd::inventory
