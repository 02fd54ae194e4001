// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_addresses.hpp"

#include "netdev/lower.hpp"

#include <algorithm>

namespace affinityd::accounting {

NicAddresses::NicAddresses(std::span<const netdev::Nic> nics) {
    const netdev::Stacks stacks(nics);
    for (const auto& nic : nics) {
        names_.push_back(nic.name);
        all_.insert(nic.name);
        const bool is_alone =
            !nic.device.empty() && std::ranges::count(nics, nic.device, &netdev::Nic::device) == 1;
        keys_.push_back(nic.ifindex == 0 ? nic.name
                        : is_alone       ? nic.device
                                         : nic.device + '#' + std::to_string(nic.ifindex));
        const bool is_reachable = nic.up && netdev::is_physical(nic);
        if (netdev::is_foreign_port(nic) || (!is_reachable && nic.addresses.empty())) continue;
        const bool is_detached = nic.is_detached || nic.name == "lo";
        std::vector<unsigned> carriers;
        const auto add = [&](const netdev::Nic& upper) {
            for (const auto* carrier : stacks.under(upper))
                carriers.push_back(static_cast<unsigned>(carrier - nics.data()));
        };
        if (!is_detached) add(nic);
        for (const auto& other : nics) // a service's address: what is sent to it comes over another NIC
            if (is_detached && other.has_default_route && !other.is_detached) add(other);
        if (is_reachable) reachable_.insert(reachable_.end(), carriers.begin(), carriers.end());
        for (const auto& text : nic.addresses)
            if (const auto address = inventory::IpAddress::parse(text);
                address && !(is_detached && (text.starts_with("127.") || text == "::1"))) {
                auto& known = by_address_[*address];
                known.insert(known.end(), carriers.begin(), carriers.end());
            }
    }
    std::ranges::sort(reachable_);
    const auto again = std::ranges::unique(reachable_);
    reachable_.erase(again.begin(), again.end());
}

std::span<const unsigned> NicAddresses::find(const inventory::IpAddress& address) const {
    const auto found = by_address_.find(address);
    return found == by_address_.end() ? std::span<const unsigned>() : found->second;
}

} // namespace affinityd::accounting
