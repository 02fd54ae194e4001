// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_addresses.hpp"

namespace affinityd::accounting {

NicAddresses::NicAddresses(std::span<const netdev::Nic> nics) {
    for (const auto& nic : nics) {
        const auto number = static_cast<unsigned>(names_.size());
        names_.push_back(nic.name);
        if (nic.up && !nic.device.empty()) reachable_.push_back(number);
        if (nic.name == "lo") continue;
        for (const auto& text : nic.addresses)
            if (const auto address = inventory::IpAddress::parse(text))
                by_address_[*address].push_back(number);
    }
}

std::span<const unsigned> NicAddresses::find(const inventory::IpAddress& address) const {
    const auto found = by_address_.find(address);
    return found == by_address_.end() ? std::span<const unsigned>() : found->second;
}

} // namespace affinityd::accounting
