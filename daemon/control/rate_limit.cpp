// SPDX-License-Identifier: Apache-2.0
#include "control/rate_limit.hpp"

#include <algorithm>

namespace affinityd::control {

void TokenBucket::refill(Clock::time_point now) {
    if (now <= last_) return;
    tokens_ = std::min(burst_, tokens_ + std::chrono::duration<double>(now - last_).count() * per_second_);
    last_ = now;
}

bool TokenBucket::take(Clock::time_point now, double cost) {
    refill(now);
    if (tokens_ < 1) return false;
    tokens_ -= cost;
    return true;
}

bool TokenBucket::is_full(Clock::time_point now) const {
    auto later = *this;
    later.refill(now);
    return later.tokens_ >= burst_;
}

bool RateLimit::take(std::uint32_t who, Clock::time_point now, double cost) {
    const auto known = buckets_.find(who);
    if (known != buckets_.end()) return known->second.take(now, cost);
    // A bucket that is full again says no more than one that is not there.
    if (buckets_.size() >= most_users_)
        std::erase_if(buckets_, [&](const auto& entry) { return entry.second.is_full(now); });
    if (buckets_.size() >= most_users_) return false;
    return buckets_.try_emplace(who, per_second_, burst_).first->second.take(now, cost);
}

void RateLimit::charge(std::uint32_t who, double cost) {
    if (const auto known = buckets_.find(who); known != buckets_.end()) known->second.charge(cost);
}

} // namespace affinityd::control
