// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>

namespace affinityd::host {

/// Of what `number` is.
enum class Avoid : std::uint8_t {
    process, ///< by number
    inode,   ///< a socket, which many processes may have open
    cookie   ///< the same, by SO_COOKIE
};

/// What system calls are made on.
struct Avoidable {
    Avoid kind = Avoid::process;
    std::uint64_t number = 0;
    auto operator<=>(const Avoidable&) const = default;
};

/// What is not to be touched, and for how long. While a call on it has not come back: for `longest`, since
/// its number may be another's after that; but a cookie never is. Once it has come back: for a rest. An
/// honest server makes a call wait, too, where its machine stands still for a moment or much comes in at
/// once. So the first rest is short, each further one is twice as long, and each `good_time` without one that
/// gets stuck takes that back by one step. Not for several threads.
class Avoidances {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds first_rest{10}, longest{600}, good_time{60};
    static constexpr std::size_t most = 1024; ///< then of those that rest the one that ends first makes room

    /// A call on it is stuck.
    void note_stuck(const Avoidable& what, Clock::time_point now);
    /// That call has come back, and what it used is let go.
    void note_back(const Avoidable& what, Clock::time_point now);

    /// From now on only calls that are away count: it is the last chance to touch what was told to rest.
    void end_rests() { are_rests_over_ = true; }
    [[nodiscard]] bool contain(const Avoidable& what, Clock::time_point now) const;

  private:
    struct Avoidance {
        Clock::time_point until{};
        std::int64_t steps = 0; ///< the rest is first_rest, doubled once less than that
        unsigned away = 0;      ///< calls that have not come back
    };
    static std::int64_t steps_left(const Avoidance& one, Clock::time_point now);
    void make_room(Clock::time_point now);
    std::map<Avoidable, Avoidance> all_;
    bool are_rests_over_ = false;
};

} // namespace affinityd::host
