// SPDX-License-Identifier: Apache-2.0
#include "host/attributes.hpp"

#include <climits>
#include <cstring>

#include <netlink/attr.h>

namespace affinityd::host {

std::optional<std::span<const std::byte>> Attributes::find(int type) const {
    if (bytes_.empty() || bytes_.size() > INT_MAX) return std::nullopt;
    const auto* first = reinterpret_cast<const nlattr*>(bytes_.data());
    const nlattr* found = nla_find(first, static_cast<int>(bytes_.size()), type);
    if (found == nullptr) return std::nullopt;
    return std::span(static_cast<const std::byte*>(nla_data(found)),
                     static_cast<std::size_t>(nla_len(found)));
}

std::optional<std::uint32_t> Attributes::u32(int type) const {
    const auto bytes = find(type);
    std::uint32_t value = 0;
    if (!bytes || bytes->size() < sizeof value) return std::nullopt;
    std::memcpy(&value, bytes->data(), sizeof value);
    return value;
}

std::optional<std::string> Attributes::text(int type) const {
    const auto bytes = find(type);
    if (!bytes) return std::nullopt;
    const auto* first = reinterpret_cast<const char*>(bytes->data());
    return std::string(first, ::strnlen(first, bytes->size()));
}

Attributes Attributes::nested(int type) const {
    return Attributes(find(type).value_or(std::span<const std::byte>()));
}

} // namespace affinityd::host
