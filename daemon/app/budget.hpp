// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <unordered_map>

#include <sys/types.h>

namespace affinityd::app {

/// The time of the loop that each person's programs may take for themselves: events, scans, joins and
/// questions on the bus. A person is a user with all subordinate ids. Each has a fifth of a CPU, and 40 ms at
/// once, so that another person's program never waits for longer. Work of a person whose budget is spent
/// waits for the next pass; requests are refused. Bounded to 4,096 persons.
class Budget {
  public:
    using Clock = std::chrono::steady_clock;

    /// True: nothing more is done for this person now.
    [[nodiscard]] bool is_spent(uid_t person, Clock::time_point now) const {
        return debt(person, now) > at_once;
    }
    /// True: half of what may be taken at once has been taken.
    [[nodiscard]] bool is_low(uid_t person, Clock::time_point now) const {
        return debt(person, now) > at_once / 2;
    }
    /// Takes the time that work took. The loop may have been interrupted meanwhile, so no more than 2 ms
    /// count.
    void charge(uid_t person, Clock::duration time, Clock::time_point now) {
        if (paid_.size() >= most_persons && !paid_.contains(person))
            std::erase_if(paid_, [&](const auto& entry) { return entry.second <= now; });
        if (paid_.size() >= most_persons && !paid_.contains(person)) return;
        auto& paid = paid_[person];
        paid = std::min(std::max(paid, now) + share * std::min<Clock::duration>(time, longest_charge),
                        now + longest_debt);
    }

  private:
    static constexpr int share = 5; // one in so many
    static constexpr std::chrono::milliseconds longest_charge{2};
    static constexpr Clock::duration at_once = share * std::chrono::milliseconds(40);
    static constexpr Clock::duration longest_debt = std::chrono::seconds(2);
    static constexpr std::size_t most_persons = 4096;

    [[nodiscard]] Clock::duration debt(uid_t person, Clock::time_point now) const {
        const auto found = paid_.find(person);
        return found == paid_.end() ? Clock::duration::zero() : found->second - now;
    }

    std::unordered_map<uid_t, Clock::time_point> paid_; ///< when all that was taken will have been earned
};

} // namespace affinityd::app
