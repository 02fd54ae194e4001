// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace affinityd::control {

/// How often something may be done: `burst` times at once, then `per_second` in the mean.
class TokenBucket {
  public:
    using Clock = std::chrono::steady_clock;
    TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}

    /// False: not now. `cost` may be more than is left: then what follows waits for longer.
    bool take(Clock::time_point now, double cost = 1);
    /// What was taken turned out to cost more.
    void charge(double cost) { tokens_ -= cost; }
    [[nodiscard]] bool is_full(Clock::time_point now) const;

  private:
    void refill(Clock::time_point now);
    double per_second_, burst_, tokens_;
    Clock::time_point last_{};
};

/// A token bucket for each user, or each process. Not for each connection: anybody may have many of those.
class RateLimit {
  public:
    using Clock = TokenBucket::Clock;
    RateLimit(double per_second, double burst, std::size_t most_users = 256)
        : per_second_(per_second), burst_(burst), most_users_(most_users) {}

    /// False: this one, or too many others, asked too much of late.
    bool take(std::uint32_t who, Clock::time_point now, double cost = 1);
    /// What this one asked for took longer than was thought.
    void charge(std::uint32_t who, double cost);

  private:
    double per_second_, burst_;
    std::size_t most_users_;
    std::unordered_map<std::uint32_t, TokenBucket> buckets_;
};

} // namespace affinityd::control
