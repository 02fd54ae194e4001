// SPDX-License-Identifier: Apache-2.0
#include "host/wait_charges.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::host {

WaitCharges::Clock::duration WaitCharges::left(const Charge& charge, Clock::time_point now) {
    return std::max(Clock::duration(0), charge.sum - (now - charge.at) / (per / most));
}

WaitCharges::Charge& WaitCharges::charge_of(uid_t person, Clock::time_point now) {
    if (!all_.contains(person)) {
        std::erase_if(all_, [&](const auto& one) {
            return one.second.away == 0 && left(one.second, now) == Clock::duration(0);
        });
        if (all_.size() >= most_persons)
            all_.erase(std::ranges::min_element(all_, {}, [&](const auto& one) {
                return std::pair(one.second.away > 0, left(one.second, now));
            }));
    }
    return all_[person];
}

void WaitCharges::add(uid_t person, Clock::duration time, Clock::time_point now) {
    auto& charge = charge_of(person, now);
    charge.sum = std::min<Clock::duration>(left(charge, now) + time, 2 * most);
    charge.at = now;
}

void WaitCharges::add_away(uid_t person, Clock::time_point now) { ++charge_of(person, now).away; }

void WaitCharges::end_away(uid_t person) {
    if (const auto found = all_.find(person); found != all_.end() && found->second.away > 0)
        --found->second.away;
}

void WaitCharges::forgive() {
    for (auto& [person, charge] : all_)
        charge.sum = {};
}

bool WaitCharges::is_too_much(const Charge& charge, Clock::time_point now) {
    return charge.away >= most_away || left(charge, now) > most;
}

bool WaitCharges::is_too_much(uid_t person, Clock::time_point now) const {
    const auto found = all_.find(person);
    return found != all_.end() && is_too_much(found->second, now);
}

bool WaitCharges::is_too_much(Clock::time_point now) const {
    return std::ranges::any_of(all_, [&](const auto& one) { return is_too_much(one.second, now); });
}

} // namespace affinityd::host
