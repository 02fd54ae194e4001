// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/steering.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::app {

/// Withdraws steering where it gives one worker much more than its share of the connections, and allows it
/// again later: after ten minutes, then after twice as long each time, two hours at most.
class SteerGuard {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::minutes first_pause{10}, longest_pause{120};

    /// What came to the listeners of a policy that are steered since they were read before. The share for
    /// which it is withdrawn from now on; no value: it is not withdrawn, or was before.
    std::optional<planner::AcceptShares::Share> see(const std::string& policy, planner::AcceptProcesses found,
                                                    std::span<const planner::ListenerTarget> steered,
                                                    Clock::time_point now);
    [[nodiscard]] bool is_withdrawn(std::string_view policy, Clock::time_point now) const;
    /// When the next one may be steered again; max(): none is withdrawn.
    [[nodiscard]] Clock::time_point next_trial(Clock::time_point now) const;
    /// All others do not steer any more.
    void keep_only(const std::function<bool(const std::string& policy)>& steers);

  private:
    struct Watched {
        std::map<std::vector<std::uint8_t>, planner::AcceptShares> addresses;
        Clock::duration pause{}; ///< the last one
        Clock::time_point until = Clock::time_point::min();
    };
    std::map<std::string, Watched, std::less<>> policies_;
};

} // namespace affinityd::app
