// SPDX-License-Identifier: Apache-2.0
#include "inventory/descriptor_walk.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace affinityd::inventory {

namespace {

/// The number in "socket:[123]".
std::optional<std::uint64_t> socket_inode(std::string_view link) {
    constexpr std::string_view head = "socket:[";
    if (!link.starts_with(head) || !link.ends_with("]")) return std::nullopt;
    return parse_number<std::uint64_t>(link.substr(head.size(), link.size() - head.size() - 1));
}

} // namespace

Result<DescriptorWalk> DescriptorWalk::open(const host::Dir& process) {
    auto entries = NumberedEntries::open(process, "fd");
    if (!entries) return std::unexpected(entries.error());
    return DescriptorWalk(std::move(*entries));
}

Result<bool> DescriptorWalk::step(std::size_t most) {
    std::array<char, 64> target{}; // what is longer is no socket
    for (std::size_t looked = 0; looked < most; ++looked) {
        const auto number = entries_.next();
        if (!number) return std::unexpected(number.error());
        if (!*number) return true;
        const auto length =
            ::readlinkat(entries_.dir().fd(), std::to_string(**number).c_str(), target.data(), target.size());
        if (length <= 0) continue;
        if (const auto inode = socket_inode({target.data(), static_cast<std::size_t>(length)}))
            inodes_.push_back(*inode);
    }
    return false;
}

std::vector<std::uint64_t> DescriptorWalk::take_inodes() {
    std::ranges::sort(inodes_);
    const auto rest = std::ranges::unique(inodes_); // a duplicated descriptor is the same socket
    inodes_.erase(rest.begin(), rest.end());
    return std::exchange(inodes_, {});
}

} // namespace affinityd::inventory
