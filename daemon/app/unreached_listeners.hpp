// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>

namespace affinityd::app {

/// Listeners that are to be put back, perhaps, and cannot be reached for a moment, as somebody makes system
/// calls on them wait, or who has them open is still being looked for. They are tried again after a while,
/// which is longer each time in vain.
class UnreachedListeners {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds first_wait{10}, longest_wait{600};
    static constexpr std::chrono::hours between_notices{1};

    /// To try those again costs looks at whole families: so many of a policy in one round.
    static constexpr std::size_t most_again_in_round = 128;

    /// It could not be put back before, and many such of its policy were tried in this round: this one is
    /// not.
    [[nodiscard]] bool rests(const planner::Subject& subject, const std::string& policy);
    /// It could not be looked at.
    void see(const planner::Subject& subject);
    /// It could not be put back. True: that is to be told.
    [[nodiscard]] bool see_not_put_back(const planner::Subject& subject, const std::string& policy,
                                        Clock::time_point now);
    /// It is not looked at in this round: what was seen of it stands.
    void keep(const planner::Subject& subject);
    /// A round over all listeners has ended: forgets those that were not seen in it. When the next one is to
    /// be; no value: there are none.
    [[nodiscard]] std::optional<Clock::time_point> end_round(Clock::time_point now);

  private:
    struct Seen {
        std::optional<Clock::time_point> told;
        bool in_this_round = false;
    };
    std::unordered_map<planner::Subject, Seen> seen_;
    bool are_some_new_ = false;
    /// By policy: those that were not put back in this round, nor before.
    std::unordered_map<std::string, std::size_t> again_;
    std::chrono::seconds wait_{0};
    Clock::time_point next_{};
};

} // namespace affinityd::app
