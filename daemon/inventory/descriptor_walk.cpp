// SPDX-License-Identifier: Apache-2.0
#include "inventory/descriptor_walk.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace affinityd::inventory {

std::optional<std::uint64_t> socket_inode(const host::Dir& descriptors, int number) {
    constexpr std::string_view head = "socket:[";
    std::array<char, 64> target{}; // what is longer is no socket
    const auto length =
        ::readlinkat(descriptors.fd(), std::to_string(number).c_str(), target.data(), target.size());
    const std::string_view link(target.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length)));
    if (!link.starts_with(head) || !link.ends_with("]")) return std::nullopt;
    return parse_number<std::uint64_t>(link.substr(head.size(), link.size() - head.size() - 1));
}

Result<DescriptorWalk> DescriptorWalk::open(const host::Dir& process) {
    auto entries = NumberedEntries::open(process, "fd");
    if (!entries) return std::unexpected(entries.error());
    return DescriptorWalk(std::move(*entries));
}

Result<bool> DescriptorWalk::step(std::size_t most) {
    for (std::size_t looked = 0; looked < most; ++looked) {
        const auto number = entries_.next();
        if (!number) return std::unexpected(number.error());
        if (!*number) return true;
        if (const auto inode = socket_inode(entries_.dir(), **number)) inodes_.push_back(*inode);
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
