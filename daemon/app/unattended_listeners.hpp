// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>

namespace affinityd::app {

/// Listeners from which nobody was seen to take connections, though others of their address are steered or
/// could be, by inode: since when. A worker that starts, or is busy, is waited for; one that takes
/// connections by select(2) or io_uring is never seen.
class UnattendedListeners {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds patience{60};

    /// These are all now.
    void see(const std::set<std::uint64_t>& unattended, Clock::time_point now) {
        std::erase_if(since_, [&](const auto& one) { return !unattended.contains(one.first); });
        for (const auto inode : unattended)
            since_.try_emplace(inode, now);
    }
    /// Those that were waited for in vain.
    [[nodiscard]] std::set<std::uint64_t> given_up(Clock::time_point now) const {
        std::set<std::uint64_t> found;
        for (const auto& [inode, since] : since_)
            if (now - since >= patience) found.insert(inode);
        return found;
    }
    [[nodiscard]] bool are_some() const { return !since_.empty(); }
    [[nodiscard]] bool has_any_of(std::span<const std::uint64_t> inodes) const {
        return std::ranges::any_of(inodes, [this](std::uint64_t one) { return since_.contains(one); });
    }

  private:
    std::map<std::uint64_t, Clock::time_point> since_;
};

} // namespace affinityd::app
