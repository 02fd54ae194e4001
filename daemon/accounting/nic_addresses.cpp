// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_addresses.hpp"

#include <algorithm>
#include <string_view>

#include <arpa/inet.h>

namespace affinityd::accounting {

std::optional<Address> parse_address(const std::string& text) {
    Address address{};
    if (::inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
    address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (::inet_pton(AF_INET, text.c_str(), address.data() + 12) == 1) return address;
    return std::nullopt;
}

std::size_t NicAddresses::Hash::operator()(const Address& address) const noexcept {
    const std::string_view bytes(reinterpret_cast<const char*>(address.data()), address.size());
    return std::hash<std::string_view>{}(bytes);
}

NicAddresses::NicAddresses(std::span<const netdev::Nic> nics) {
    for (const auto& nic : nics) {
        const auto number = static_cast<unsigned>(names_.size());
        names_.push_back(nic.name);
        if (nic.up && !nic.device.empty()) reachable_.push_back(number);
        if (nic.name == "lo") continue;
        for (const auto& text : nic.addresses)
            if (const auto address = parse_address(text)) by_address_[*address].push_back(number);
    }
}

std::span<const unsigned> NicAddresses::find(const Address& address) const {
    const auto found = by_address_.find(address);
    return found == by_address_.end() ? std::span<const unsigned>() : found->second;
}

} // namespace affinityd::accounting
