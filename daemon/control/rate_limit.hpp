// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <unordered_map>

#include <sys/types.h>

namespace affinityd::control {

/// How often something may be done: `burst` times at once, then `per_second` in the mean.
class TokenBucket {
  public:
    using Clock = std::chrono::steady_clock;
    TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}

    /// False: not now. `cost` may be more than is left: then what follows waits for longer.
    bool take(Clock::time_point now, double cost = 1);
    [[nodiscard]] bool is_full(Clock::time_point now) const;

  private:
    void refill(Clock::time_point now);
    double per_second_, burst_, tokens_;
    Clock::time_point last_{};
};

/// A token bucket for each user. By user and not by connection: anybody may have many of those.
class RateLimit {
  public:
    using Clock = TokenBucket::Clock;
    RateLimit(double per_second, double burst, std::size_t most_users = 256)
        : per_second_(per_second), burst_(burst), most_users_(most_users) {}

    /// False: this user, or too many users, asked too much of late.
    bool take(uid_t user, Clock::time_point now, double cost = 1);

  private:
    double per_second_, burst_;
    std::size_t most_users_;
    std::unordered_map<uid_t, TokenBucket> buckets_;
};

} // namespace affinityd::control
