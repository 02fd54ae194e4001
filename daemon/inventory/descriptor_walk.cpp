// SPDX-License-Identifier: Apache-2.0
#include "inventory/descriptor_walk.hpp"

#include "host/socket_link.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <unistd.h>

namespace affinityd::inventory {

std::optional<std::uint64_t> socket_inode(const host::Dir& descriptors, int number) {
    return host::socket_inode(descriptors.fd(), std::to_string(number));
}

int why_no_link(const host::Dir& descriptors, int number) {
    std::array<char, 1> text{};
    const bool may =
        ::readlinkat(descriptors.fd(), std::to_string(number).c_str(), text.data(), text.size()) >= 0;
    const int code = may ? 0 : errno;
    return code == EACCES || code == EPERM ? code : 0;
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
