// SPDX-License-Identifier: Apache-2.0
#include "host/avoidances.hpp"

#include <algorithm>

namespace affinityd::host {

namespace {

std::chrono::seconds rest(unsigned times) {
    auto length = Avoidances::first_rest;
    for (unsigned i = 1; i < times && length < Avoidances::longest; ++i)
        length *= 2;
    return std::min(length, Avoidances::longest);
}

} // namespace

void Avoidances::begin(const Avoidable& what, Clock::time_point now) {
    forget_old(now);
    if (all_.size() >= most && !all_.contains(what))
        all_.erase(std::ranges::min_element(all_, {}, [](const auto& one) { return one.second.until; }));
    auto& avoidance = all_[what];
    if (avoidance.until <= now) ++avoidance.rests; // else it is of the same time as another
    ++avoidance.away;
    avoidance.until = now + longest;
}

void Avoidances::end(const Avoidable& what, Clock::time_point now) {
    const auto found = all_.find(what);
    if (found == all_.end() || found->second.away == 0) return; // it has made room
    auto& avoidance = found->second;
    if (--avoidance.away == 0) avoidance.until = now + rest(avoidance.rests);
}

bool Avoidances::contain(const Avoidable& what, Clock::time_point now) const {
    const auto found = all_.find(what);
    return found != all_.end() && found->second.until > now;
}

bool Avoidances::contain(Avoid kind, Clock::time_point now) const {
    return std::ranges::any_of(
        all_, [&](const auto& one) { return one.first.kind == kind && one.second.until > now; });
}

void Avoidances::forget_old(Clock::time_point now) {
    std::erase_if(all_,
                  [&](const auto& one) { return one.second.away == 0 && one.second.until + longest <= now; });
}

} // namespace affinityd::host
