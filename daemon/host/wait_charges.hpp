// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>

#include <sys/types.h>

namespace affinityd::host {

/// How long others waited for what each person's processes have open: `most` in `per` is what anybody may
/// take, and `most_away` calls that have not come back. Time is forgotten at that rate, so that who took a
/// little more is avoided for a little while (the leaky bucket of ITU-T I.371); what exceeds 2 * `most` is
/// not charged. Not for several threads.
class WaitCharges {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds most{1}, per{600};
    static constexpr unsigned most_away = 8;
    static constexpr std::size_t most_persons = 1024; ///< the one who took least makes room

    void add(uid_t person, Clock::duration time, Clock::time_point now);
    void add_away(uid_t person, Clock::time_point now);
    void end_away(uid_t person);
    /// Nobody has waited for anything; calls that are away stay so.
    void forgive();
    /// He is to be avoided: for what was waited, for `per` at most.
    [[nodiscard]] bool is_too_much(uid_t person, Clock::time_point now) const;
    /// Somebody is.
    [[nodiscard]] bool is_too_much(Clock::time_point now) const;

  private:
    struct Charge {
        Clock::duration sum{};
        Clock::time_point at{};
        unsigned away = 0; ///< calls; as long as there are some, it stays
    };
    [[nodiscard]] Charge& charge_of(uid_t person, Clock::time_point now);
    static bool is_too_much(const Charge& charge, Clock::time_point now);
    static Clock::duration left(const Charge& charge, Clock::time_point now);
    std::map<uid_t, Charge> all_;
};

} // namespace affinityd::host
