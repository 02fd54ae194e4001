// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netdev/nic.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::accounting {

/// An IPv6 address in network order; an IPv4 address is mapped into it (RFC 4291, 2.5.5.2).
using Address = std::array<std::uint8_t, 16>;

/// No value: the text is no address.
[[nodiscard]] std::optional<Address> parse_address(const std::string& text);

/// Which NIC has which address. NICs are numbers from 0 in the order they were given.
class NicAddresses {
  public:
    explicit NicAddresses(std::span<const netdev::Nic> nics);

    [[nodiscard]] std::size_t size() const { return names_.size(); }
    [[nodiscard]] const std::string& name(std::size_t nic) const { return names_[nic]; }
    /// NICs that have the address, but loopback; empty: none has.
    [[nodiscard]] std::span<const unsigned> find(const Address& address) const;
    /// NICs that a wildcard listener may be reached through: those that are up and belong to a device.
    /// Loopback, bridges and other virtual NICs serve only where a policy names them.
    [[nodiscard]] std::span<const unsigned> reachable() const { return reachable_; }

  private:
    struct Hash {
        std::size_t operator()(const Address& address) const noexcept;
    };
    std::vector<std::string> names_;
    std::unordered_map<Address, std::vector<unsigned>, Hash> by_address_;
    std::vector<unsigned> reachable_;
};

} // namespace affinityd::accounting
