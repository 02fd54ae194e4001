// SPDX-License-Identifier: Apache-2.0
#include "accounting/socket_walk.hpp"

#include "host/root.hpp"
#include "inventory/descriptor_walk.hpp"

#include <string>

namespace affinityd::accounting {

Result<std::optional<SocketWalk>> SocketWalk::open(const host::Root& root, int pid, std::size_t most) {
    auto entries = inventory::NumberedEntries::open(root.proc(), std::to_string(pid) + "/fd");
    if (!entries && host::means_absent(entries.error().code)) return std::nullopt;
    if (!entries) return std::unexpected(entries.error());
    return SocketWalk(std::move(*entries), most);
}

Result<bool> SocketWalk::step(const std::function<void(std::uint64_t inode)>& found,
                              const std::function<bool()>& out_of_time) {
    do {
        const auto number = entries_.next();
        if (!number) return std::unexpected(number.error());
        if (!*number) return true;
        if (left_ == 0) {
            is_truncated_ = true;
            return true;
        }
        --left_;
        if (const auto inode = inventory::socket_inode(entries_.dir(), **number)) found(*inode);
    } while (!out_of_time());
    return false;
}

} // namespace affinityd::accounting
