// SPDX-License-Identifier: Apache-2.0
#include "host/wait_charges.hpp"

#include <algorithm>

namespace affinityd::host {

WaitCharges::Clock::duration WaitCharges::left(const Charge& charge, Clock::time_point now) {
    return std::max(Clock::duration(0), charge.sum - (now - charge.at) / (per / most));
}

void WaitCharges::add(uid_t person, Clock::duration time, Clock::time_point now) {
    if (!all_.contains(person)) {
        std::erase_if(all_, [&](const auto& one) { return left(one.second, now) == Clock::duration(0); });
        if (all_.size() >= most_persons)
            all_.erase(
                std::ranges::min_element(all_, {}, [&](const auto& one) { return left(one.second, now); }));
    }
    auto& charge = all_[person];
    charge = {std::min<Clock::duration>(left(charge, now) + time, 2 * most), now};
}

bool WaitCharges::is_too_much(uid_t person, Clock::time_point now) const {
    const auto found = all_.find(person);
    return found != all_.end() && left(found->second, now) > most;
}

bool WaitCharges::is_too_much(Clock::time_point now) const {
    return std::ranges::any_of(all_, [&](const auto& one) { return left(one.second, now) > most; });
}

} // namespace affinityd::host
