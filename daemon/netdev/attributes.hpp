// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace affinityd::netdev {

/// A run of netlink attributes, read without trust: one that is cut short or claims more than there is ends
/// the run. Source: Documentation/userspace-api/netlink/intro.rst. Does not own the bytes.
class Attributes {
  public:
    explicit Attributes(std::span<const std::byte> bytes) : bytes_(bytes) {}

    /// The value of the first attribute of a type, without header and padding.
    [[nodiscard]] std::optional<std::span<const std::byte>> find(unsigned type) const;
    [[nodiscard]] std::optional<std::uint32_t>
    u32(unsigned type) const; ///< nothing if it has less than four bytes
    [[nodiscard]] std::optional<std::string> text(unsigned type) const; ///< up to its NUL
    [[nodiscard]] Attributes nested(unsigned type) const; ///< no attributes if there is none of the type

  private:
    std::span<const std::byte> bytes_;
};

} // namespace affinityd::netdev
