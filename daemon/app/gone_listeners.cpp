// SPDX-License-Identifier: Apache-2.0
#include "app/gone_listeners.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace affinityd::app {

bool GoneListeners::rests(const planner::Subject& subject, Clock::time_point now) {
    const auto found = seen_.find(subject);
    if (found == seen_.end() || now - found->second.first >= grace_) return false;
    found->second.in_this_round = true;
    return true;
}

bool GoneListeners::see_gone(const planner::Subject& subject, Clock::time_point now) {
    auto& seen = seen_.try_emplace(subject, Seen{now}).first->second;
    seen.in_this_round = true;
    return now - seen.first >= grace_;
}

void GoneListeners::keep(const planner::Subject& subject) {
    if (const auto found = seen_.find(subject); found != seen_.end()) found->second.in_this_round = true;
}

bool GoneListeners::are_some_recent(Clock::time_point now) const {
    return std::ranges::any_of(seen_, [&](const auto& one) { return now - one.second.first < grace_; });
}

void GoneListeners::end_round() {
    for (auto one = seen_.begin(); one != seen_.end();)
        one = std::exchange(one->second.in_this_round, false) ? std::next(one) : seen_.erase(one);
}

} // namespace affinityd::app
