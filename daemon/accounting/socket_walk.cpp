// SPDX-License-Identifier: Apache-2.0
#include "accounting/socket_walk.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <array>
#include <string>
#include <string_view>

#include <unistd.h>

namespace affinityd::accounting {

namespace {

/// The number in "socket:[123]".
std::optional<std::uint64_t> socket_inode(std::string_view link) {
    constexpr std::string_view head = "socket:[";
    if (!link.starts_with(head) || !link.ends_with("]")) return std::nullopt;
    return parse_number<std::uint64_t>(link.substr(head.size(), link.size() - head.size() - 1));
}

} // namespace

Result<std::optional<SocketWalk>> SocketWalk::open(const host::Root& root, int pid, std::size_t most) {
    auto entries = inventory::NumberedEntries::open(root.proc(), std::to_string(pid) + "/fd");
    if (!entries && host::means_absent(entries.error().code)) return std::nullopt;
    if (!entries) return std::unexpected(entries.error());
    return SocketWalk(std::move(*entries), most);
}

Result<bool> SocketWalk::step(const std::function<void(std::uint64_t inode)>& found,
                              const std::function<bool()>& out_of_time) {
    std::array<char, 64> target{}; // a longer link is no socket
    do {
        const auto number = entries_.next();
        if (!number) return std::unexpected(number.error());
        if (!*number) return true;
        if (left_ == 0) {
            is_truncated_ = true;
            return true;
        }
        --left_;
        const auto length =
            ::readlinkat(entries_.dir().fd(), std::to_string(**number).c_str(), target.data(), target.size());
        if (length <= 0) continue;
        if (const auto inode = socket_inode({target.data(), static_cast<std::size_t>(length)})) found(*inode);
    } while (!out_of_time());
    return false;
}

} // namespace affinityd::accounting
