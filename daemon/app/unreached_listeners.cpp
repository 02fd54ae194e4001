// SPDX-License-Identifier: Apache-2.0
#include "app/unreached_listeners.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace affinityd::app {

bool UnreachedListeners::rests(const planner::Subject& subject, const std::string& policy) {
    const auto found = seen_.find(subject);
    const auto again = again_.find(policy);
    if (again == again_.end() || again->second < most_again_in_round) return false;
    if (found == seen_.end() || !found->second.told) return false;
    found->second.in_this_round = true;
    return true;
}

void UnreachedListeners::see(const planner::Subject& subject) {
    const auto [one, is_new] = seen_.try_emplace(subject);
    are_some_new_ |= is_new;
    one->second.in_this_round = true;
}

bool UnreachedListeners::see_not_put_back(const planner::Subject& subject, const std::string& policy,
                                          Clock::time_point now) {
    see(subject);
    auto& told = seen_[subject].told;
    if (told) ++again_[policy];
    if (told && now - *told < between_notices) return false;
    told = now;
    return true;
}

void UnreachedListeners::keep(const planner::Subject& subject) {
    if (const auto found = seen_.find(subject); found != seen_.end()) found->second.in_this_round = true;
}

std::optional<UnreachedListeners::Clock::time_point> UnreachedListeners::end_round(Clock::time_point now) {
    for (auto one = seen_.begin(); one != seen_.end();)
        one = std::exchange(one->second.in_this_round, false) ? std::next(one) : seen_.erase(one);
    again_.clear();
    const bool begins = std::exchange(are_some_new_, false);
    if (seen_.empty()) return std::nullopt;
    if (begins) {
        wait_ = first_wait;
        next_ = now + wait_;
    } else if (now >= next_) { // rounds for other reasons do not count
        wait_ = std::min(2 * wait_, longest_wait);
        next_ = now + wait_;
    }
    return next_;
}

} // namespace affinityd::app
