// SPDX-License-Identifier: Apache-2.0
#include "app/steer_guard.hpp"

#include <algorithm>

namespace affinityd::app {

std::optional<planner::AcceptShares::Share> SteerGuard::see(const std::string& policy,
                                                            planner::AcceptProcesses found,
                                                            std::span<const planner::ListenerTarget> steered,
                                                            Clock::time_point now) {
    auto& watched = policies_[policy];
    if (now < watched.until) return std::nullopt;
    const auto time = std::chrono::duration_cast<planner::AcceptShares::Time>(now.time_since_epoch());
    const auto counts = planner::count_accepted(found, steered);
    std::erase_if(watched.addresses, [&](const auto& address) { return !counts.contains(address.first); });
    for (const auto& [address, count] : counts) {
        auto& shares = watched.addresses[address];
        shares.see(time, count);
        const auto unfair = shares.unfair();
        if (!unfair) continue;
        // It went well for as long as the last pause, or longer: whatever was the matter then is over.
        const bool was_good =
            watched.until == Clock::time_point::min() || now - watched.until > watched.pause;
        watched.pause = was_good ? first_pause : std::min<Clock::duration>(2 * watched.pause, longest_pause);
        watched.until = now + watched.pause;
        watched.addresses.clear();
        return unfair;
    }
    return std::nullopt;
}

bool SteerGuard::is_withdrawn(std::string_view policy, Clock::time_point now) const {
    const auto found = policies_.find(policy);
    return found != policies_.end() && now < found->second.until;
}

SteerGuard::Clock::time_point SteerGuard::next_trial(Clock::time_point now) const {
    auto next = Clock::time_point::max();
    for (const auto& [policy, watched] : policies_)
        if (watched.until > now) next = std::min(next, watched.until);
    return next;
}

void SteerGuard::keep_only(const std::function<bool(const std::string& policy)>& steers) {
    std::erase_if(policies_, [&](const auto& one) { return !steers(one.first); });
}

} // namespace affinityd::app
