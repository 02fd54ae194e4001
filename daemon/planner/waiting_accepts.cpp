// SPDX-License-Identifier: Apache-2.0
#include "planner/waiting_accepts.hpp"

#include <utility>

namespace affinityd::planner {

void WaitingAccepts::see(Time now, Counts waiting) {
    if (!looks_.empty() && (now < looks_.back().at || now - looks_.back().at > AcceptShares::longest_rest))
        looks_.clear();
    looks_.push_back({now, std::move(waiting)});
    while (looks_.size() > 2 && now - looks_[1].at >= AcceptShares::window)
        looks_.pop_front();
}

std::optional<AcceptShares::Share> WaitingAccepts::one_sided() const {
    if (looks_.size() < fewest_looks || looks_.back().at - looks_.front().at < AcceptShares::window)
        return std::nullopt;
    std::size_t all = 0, queued = 0, idle = 0;
    for (const auto& [listener, latest] : looks_.back().waiting) {
        std::size_t known = 0, with_some = 0;
        for (const auto& look : looks_) {
            const auto found = look.waiting.find(listener);
            if (found == look.waiting.end() || !found->second) continue;
            ++known;
            with_some += *found->second > 0 ? 1 : 0;
        }
        if (known < looks_.size()) continue;
        ++all;
        if (with_some == 0) ++idle;
        if (5 * with_some >= 4 * known) ++queued;
    }
    if (queued == 0 || idle < queued) return std::nullopt;
    return AcceptShares::Share{static_cast<double>(queued) / static_cast<double>(all), all};
}

} // namespace affinityd::planner
