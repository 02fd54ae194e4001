// SPDX-License-Identifier: Apache-2.0
#include "inventory/ip_address.hpp"

#include <algorithm>

#include <arpa/inet.h>

namespace affinityd::inventory {

namespace {

/// In front of the four bytes of IPv4.
constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

} // namespace

IpAddress IpAddress::from_ipv4(const std::array<std::uint8_t, 4>& bytes) {
    IpAddress address;
    std::ranges::copy(bytes, std::ranges::copy(mapped, address.bytes.begin()).out);
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

bool IpAddress::is_ipv4() const { return std::equal(mapped.begin(), mapped.end(), bytes.begin()); }

bool IpAddress::is_any() const { return *this == IpAddress{} || *this == from_ipv4({}); }

std::string IpAddress::to_text() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (is_ipv4())
        ::inet_ntop(AF_INET, bytes.data() + mapped.size(), text.data(), text.size());
    else
        ::inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());
    return text.data();
}

} // namespace affinityd::inventory
