// SPDX-License-Identifier: Apache-2.0
#include "planner/unseen_accepts.hpp"

namespace affinityd::planner {

void UnseenAccepts::see(Time now, std::uint64_t opened, std::size_t seen) {
    const bool has_jumped = !looks_.empty() && (now < looks_.back().at || opened < looks_.back().opened ||
                                                now - looks_.back().at > AcceptShares::longest_rest);
    if (has_jumped) looks_.clear();
    looks_.push_back({now, opened, seen});
    while (looks_.size() > 2 && now - looks_[1].at >= AcceptShares::window)
        looks_.pop_front();
}

bool UnseenAccepts::are_most() const {
    if (looks_.empty() || looks_.back().at - looks_.front().at < AcceptShares::window) return false;
    const auto all = looks_.back().opened - looks_.front().opened;
    std::uint64_t seen = 0;
    for (std::size_t i = 1; i < looks_.size(); ++i) // what the first one saw came before
        seen += looks_[i].seen;
    return all >= fewest && 2 * seen < all;
}

} // namespace affinityd::planner
