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
    cookie,  ///< the same, by SO_COOKIE
    user     ///< whose processes made others wait for too long
};

/// What system calls are made on, or who pays for them.
struct Avoidable {
    Avoid kind = Avoid::process;
    std::uint64_t number = 0;
    auto operator<=>(const Avoidable&) const = default;
};

/// What is not to be touched, and for how long: `longest` while a call on it has not come back, and a rest
/// after it has. An honest server makes a call wait, too, where its machine stands still for a moment or much
/// comes in at once, so that the first rest is short; each further one is twice as long. Not for several
/// threads.
class Avoidances {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds first_rest{10}, longest{600};
    static constexpr std::size_t most = 1024; ///< then the one that ends first makes room

    /// A call on it does not come back.
    void begin(const Avoidable& what, Clock::time_point now);
    /// It has, and what it used is let go.
    void end(const Avoidable& what, Clock::time_point now);

    [[nodiscard]] bool contain(const Avoidable& what, Clock::time_point now) const;
    [[nodiscard]] bool contain(Avoid kind, Clock::time_point now) const; ///< one of these

  private:
    struct Avoidance {
        Clock::time_point until{};
        unsigned rests = 0; ///< begun, each within `longest` of the end of the one before
        unsigned away = 0;  ///< calls that have not come back
    };
    void forget_old(Clock::time_point now);
    std::map<Avoidable, Avoidance> all_;
};

} // namespace affinityd::host
