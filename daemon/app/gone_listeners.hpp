// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"

#include <chrono>
#include <unordered_map>

namespace affinityd::app {

/// Listeners with records of which something was seen that counts only if it lasts. A server that is reloaded
/// hands its listeners on, by whatever way, so one is gone for good only when nobody was seen with it for a
/// while.
class GoneListeners {
  public:
    using Clock = std::chrono::steady_clock;
    /// `grace`: so long it has to last.
    explicit GoneListeners(std::chrono::seconds grace) : grace_(grace) {}

    /// Nobody had it a moment ago: it is not time to look again, which costs a look at whole families.
    [[nodiscard]] bool rests(const planner::Subject& subject, Clock::time_point now);
    /// Nobody has it now. True: for so long that its record is of no use any more.
    bool see_gone(const planner::Subject& subject, Clock::time_point now);
    /// It is not looked at in this round: what was seen of it stands.
    void keep(const planner::Subject& subject);
    /// A round over all listeners has ended: forgets those that were not seen to be gone in it.
    void end_round();
    /// Of some it is not known yet whether it lasts.
    [[nodiscard]] bool are_some_recent(Clock::time_point now) const;

  private:
    std::chrono::seconds grace_;
    struct Seen {
        Clock::time_point first{};
        bool in_this_round = false;
    };
    std::unordered_map<planner::Subject, Seen> seen_;
};

} // namespace affinityd::app
