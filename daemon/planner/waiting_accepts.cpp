// SPDX-License-Identifier: Apache-2.0
#include "planner/waiting_accepts.hpp"

#include <utility>

namespace affinityd::planner {

namespace {

constexpr WaitingAccepts::Time between_looks{1000}; // they may come in bursts

} // namespace

void WaitingAccepts::see(Time now, Counts waiting, Counts accepted) {
    if (!looks_.empty() && (now < looks_.back().at || now - looks_.back().at > AcceptShares::longest_rest))
        looks_.clear();
    if (!looks_.empty() && now - looks_.back().at < between_looks) return;
    looks_.push_back({now, std::move(waiting), std::move(accepted)});
    while (looks_.size() > 2 && now - looks_[1].at >= AcceptShares::window)
        looks_.pop_front();
}

WaitingAccepts::Seen WaitingAccepts::seen_of(std::uint64_t listener) const {
    Seen seen;
    for (const auto& look : looks_) {
        const auto found = look.waiting.find(listener);
        if (found == look.waiting.end() || !found->second) continue;
        ++seen.known;
        seen.with_some += *found->second > 0 ? 1 : 0;
        const auto taken = look.accepted.find(listener);
        seen.takes |= taken == look.accepted.end() || taken->second.value_or(1) > 0; // not known: it may
    }
    return seen;
}

std::optional<AcceptShares::Share> WaitingAccepts::one_sided() const {
    if (looks_.size() < fewest_looks || looks_.back().at - looks_.front().at < AcceptShares::window)
        return std::nullopt;
    std::size_t all = 0, queued = 0, idle = 0;
    for (const auto& [listener, latest] : looks_.back().waiting) {
        const auto seen = seen_of(listener);
        if (seen.known < looks_.size()) continue;
        ++all;
        if (seen.with_some == 0) ++idle;
        if (seen.takes && 5 * seen.with_some >= 4 * seen.known) ++queued;
    }
    const bool are_few = 4 * all < 3 * looks_.back().waiting.size(); // as where workers are replaced
    if (are_few || queued == 0 || idle < queued) return std::nullopt;
    return AcceptShares::Share{static_cast<double>(queued) / static_cast<double>(all), all};
}

} // namespace affinityd::planner
