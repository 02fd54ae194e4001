// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/ip_address.hpp"
#include "netdev/nic.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace affinityd::accounting {

/// Which NIC carries what is sent to an address: the NIC that has it, or those under that (a bond's ports).
/// To an address of a dummy, a tunnel or loopback it is sent over those with a default route. NICs are
/// numbers from 0 in the order they were given.
class NicAddresses {
  public:
    explicit NicAddresses(std::span<const netdev::Nic> nics);

    [[nodiscard]] std::size_t size() const { return names_.size(); }
    [[nodiscard]] const std::string& name(std::size_t nic) const { return names_[nic]; }
    /// Stays the same when it gets another name: its device, or its number.
    [[nodiscard]] const std::string& key(std::size_t nic) const { return keys_[nic]; }
    /// "": none has the key now.
    [[nodiscard]] std::string name_of(const std::string& key) const {
        const auto found = std::ranges::find(keys_, key);
        return found == keys_.end() ? std::string() : names_[static_cast<std::size_t>(found - keys_.begin())];
    }
    [[nodiscard]] bool has(const std::string& name) const { return all_.contains(name); }
    /// Never loopback, nor a port of a guest or container; empty: none. A NIC may be there twice.
    [[nodiscard]] std::span<const unsigned> find(const inventory::IpAddress& address) const;
    /// NICs that a wildcard listener may be reached through: those that are up and belong to a device.
    /// Loopback and other virtual NICs serve only where a policy names them, or by an address.
    [[nodiscard]] std::span<const unsigned> reachable() const { return reachable_; }

  private:
    std::vector<std::string> names_, keys_;
    std::unordered_set<std::string> all_;
    std::unordered_map<inventory::IpAddress, std::vector<unsigned>> by_address_;
    std::vector<unsigned> reachable_;
};

} // namespace affinityd::accounting
