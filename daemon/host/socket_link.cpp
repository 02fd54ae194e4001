// SPDX-License-Identifier: Apache-2.0
#include "host/socket_link.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <unistd.h>

namespace affinityd::host {

std::optional<std::uint64_t> socket_inode(int folder, const std::string& link) {
    constexpr std::string_view head = "socket:[";
    std::array<char, 64> target{}; // what is longer is no socket
    const auto length = ::readlinkat(folder, link.c_str(), target.data(), target.size());
    const std::string_view name(target.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length)));
    if (!name.starts_with(head) || !name.ends_with("]")) return std::nullopt;
    return parse_number<std::uint64_t>(name.substr(head.size(), name.size() - head.size() - 1));
}

} // namespace affinityd::host
