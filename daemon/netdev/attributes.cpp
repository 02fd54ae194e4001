// SPDX-License-Identifier: Apache-2.0
#include "netdev/attributes.hpp"

#include <algorithm>
#include <cstring>

#include <linux/netlink.h>

namespace affinityd::netdev {

std::optional<std::span<const std::byte>> Attributes::find(unsigned type) const {
    auto rest = bytes_;
    while (rest.size() >= sizeof(nlattr)) {
        nlattr head{};
        std::memcpy(&head, rest.data(), sizeof head);
        if (head.nla_len < sizeof head || head.nla_len > rest.size()) return std::nullopt;
        if ((head.nla_type & NLA_TYPE_MASK) == type)
            return rest.subspan(sizeof head, head.nla_len - sizeof head);
        const std::size_t aligned = (head.nla_len + 3U) & ~std::size_t{3};
        rest = rest.subspan(std::min(aligned, rest.size()));
    }
    return std::nullopt;
}

std::optional<std::uint32_t> Attributes::u32(unsigned type) const {
    const auto bytes = find(type);
    std::uint32_t value = 0;
    if (!bytes || bytes->size() < sizeof value) return std::nullopt;
    std::memcpy(&value, bytes->data(), sizeof value);
    return value;
}

std::optional<std::string> Attributes::text(unsigned type) const {
    const auto bytes = find(type);
    if (!bytes) return std::nullopt;
    const auto* first = reinterpret_cast<const char*>(bytes->data());
    return std::string(first, ::strnlen(first, bytes->size()));
}

Attributes Attributes::nested(unsigned type) const {
    const auto bytes = find(type);
    return Attributes(bytes.value_or(std::span<const std::byte>()));
}

} // namespace affinityd::netdev
