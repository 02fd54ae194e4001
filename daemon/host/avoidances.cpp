// SPDX-License-Identifier: Apache-2.0
#include "host/avoidances.hpp"

#include <algorithm>

namespace affinityd::host {

namespace {

constexpr std::int64_t most_steps = 7; // of the longest rest

std::chrono::seconds rest(std::int64_t steps) {
    return std::min<std::chrono::seconds>(Avoidances::first_rest * (1 << (steps - 1)), Avoidances::longest);
}
static_assert(Avoidances::first_rest * (1 << (most_steps - 1)) >= Avoidances::longest);

} // namespace

void Avoidances::note_stuck(const Avoidable& what, Clock::time_point now) {
    if (!all_.contains(what)) make_room(now);
    auto& avoidance = all_[what];
    if (avoidance.until <= now) // else it is of the same time as another
        avoidance.steps = std::min(steps_left(avoidance, now) + 1, most_steps);
    ++avoidance.away;
    avoidance.until = now + longest;
}

void Avoidances::note_back(const Avoidable& what, Clock::time_point now) {
    const auto found = all_.find(what);
    if (found == all_.end() || found->second.away == 0) return;
    auto& avoidance = found->second;
    if (--avoidance.away == 0) avoidance.until = now + rest(avoidance.steps);
}

bool Avoidances::contain(const Avoidable& what, Clock::time_point now) const {
    const auto found = all_.find(what);
    if (found == all_.end()) return false;
    const auto& avoidance = found->second;
    if (what.kind == Avoid::cookie && avoidance.away > 0) return true;
    return avoidance.until > now && (avoidance.away > 0 || !are_rests_over_);
}

std::int64_t Avoidances::steps_left(const Avoidance& one, Clock::time_point now) {
    return std::max<std::int64_t>(0, one.steps - (now - one.until) / good_time);
}

/// Those with calls that are away stay, or the return of one would be taken for another's. At most 64 calls
/// are, of three each.
void Avoidances::make_room(Clock::time_point now) {
    std::erase_if(all_, [&](const auto& one) {
        const auto& avoidance = one.second;
        return avoidance.away == 0 && avoidance.until <= now && steps_left(avoidance, now) == 0;
    });
    if (all_.size() < most) return;
    const auto ends = [](const auto& one) {
        return one.second.away > 0 ? Clock::time_point::max() : one.second.until;
    };
    all_.erase(std::ranges::min_element(all_, {}, ends));
}

} // namespace affinityd::host
