// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace affinityd::host {

/// A run of netlink attributes, walked by libnl without trust: one that is cut short or claims more than
/// there is ends the run. Does not own the bytes, which must be aligned to four.
/// Documentation/userspace-api/netlink/intro.rst.
class Attributes {
  public:
    explicit Attributes(std::span<const std::byte> bytes) : bytes_(bytes) {}

    /// The value of the first attribute of a type, without header and padding.
    [[nodiscard]] std::optional<std::span<const std::byte>> find(int type) const;
    [[nodiscard]] std::optional<std::uint32_t> u32(int type) const; ///< no value if it has under four bytes
    [[nodiscard]] std::optional<std::string> text(int type) const;  ///< up to its NUL
    [[nodiscard]] Attributes nested(int type) const; ///< without attributes if there is none of the type

  private:
    std::span<const std::byte> bytes_;
};

} // namespace affinityd::host
