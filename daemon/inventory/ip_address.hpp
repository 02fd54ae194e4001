// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd::inventory {

/// An IPv4 or IPv6 address in sixteen bytes, network byte order. IPv4 is kept as IPv4 mapped into IPv6
/// (RFC 4291, 2.5.5.2), so that a connection over an IPv6 socket compares equal with the interface's address.
struct IpAddress {
    std::array<std::uint8_t, 16> bytes{};

    /// "192.0.2.1" or "2001:db8::1"; no value for any other text.
    [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text);
    [[nodiscard]] static IpAddress from_ipv4(const std::array<std::uint8_t, 4>& bytes);
    [[nodiscard]] bool is_ipv4() const;
    [[nodiscard]] bool is_any() const; ///< 0.0.0.0 or ::
    [[nodiscard]] std::string to_text() const;

    friend auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

} // namespace affinityd::inventory

template <>
struct std::hash<affinityd::inventory::IpAddress> {
    std::size_t operator()(const affinityd::inventory::IpAddress& address) const noexcept {
        return std::hash<std::string_view>{}(
            {reinterpret_cast<const char*>(address.bytes.data()), address.bytes.size()});
    }
};
