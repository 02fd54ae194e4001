// SPDX-License-Identifier: Apache-2.0
#include "inventory/ip_address.hpp"

#include <algorithm>

#include <arpa/inet.h>

namespace affinityd::inventory {

namespace {

constexpr std::size_t ipv4_at = 12;

bool is_zero(const std::uint8_t* first, std::size_t count) {
    return std::all_of(first, first + count, [](auto byte) { return byte == 0; });
}

} // namespace

IpAddress IpAddress::from_ipv4(const std::array<std::uint8_t, 4>& bytes) {
    IpAddress address;
    address.bytes[10] = address.bytes[11] = 0xff;
    std::ranges::copy(bytes, address.bytes.begin() + ipv4_at);
    return address;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
    const std::string copy(text); // inet_pton wants a NUL
    std::array<std::uint8_t, 4> ipv4{};
    if (::inet_pton(AF_INET, copy.c_str(), ipv4.data()) == 1) return from_ipv4(ipv4);
    IpAddress address;
    if (::inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) == 1) return address;
    return std::nullopt;
}

bool IpAddress::is_ipv4() const {
    return is_zero(bytes.data(), 10) && bytes[10] == 0xff && bytes[11] == 0xff;
}

bool IpAddress::is_any() const {
    return is_ipv4() ? is_zero(bytes.data() + ipv4_at, 4) : is_zero(bytes.data(), bytes.size());
}

std::string IpAddress::to_text() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (is_ipv4())
        ::inet_ntop(AF_INET, bytes.data() + ipv4_at, text.data(), text.size());
    else
        ::inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());
    return text.data();
}

} // namespace affinityd::inventory
