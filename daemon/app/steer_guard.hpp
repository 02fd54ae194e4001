// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/steering.hpp"
#include "planner/unseen_accepts.hpp"
#include "planner/waiting_accepts.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::app {

/// Withdraws steering from an address where it gives one worker much more than its share of the connections,
/// and allows it again later: after ten minutes, then after twice as long each time, two hours at most.
class SteerGuard {
  public:
    using Clock = std::chrono::steady_clock;
    using Address = std::vector<std::uint8_t>; ///< as inventory::AcceptSocket::bound_to
    static constexpr std::chrono::minutes first_pause{10}, longest_pause{120};

    struct Unfair {
        std::uint16_t port = 0;
        planner::AcceptShares::Share share;
        enum class Of : std::uint8_t { connections, cpu_time, waiting } of{}; ///< what `share` is one of
        Clock::duration pause{};                                              ///< for so long it is withdrawn
    };
    /// What came to the listeners of a policy that are steered since they were read before, and what their
    /// workers had to do. Addresses that are withdrawn from now on.
    std::vector<Unfair> see(const std::string& policy, planner::AcceptProcesses found,
                            std::span<const planner::ListenerTarget> steered, Clock::time_point now);
    [[nodiscard]] bool is_withdrawn(std::string_view policy, const Address& address,
                                    Clock::time_point now) const;
    /// When the next one may be steered again; max(): none is withdrawn.
    [[nodiscard]] Clock::time_point next_trial(Clock::time_point now) const;
    /// How many addresses of a policy are watched, or remembered.
    [[nodiscard]] std::size_t watched(std::string_view policy) const;
    /// All others do not steer any more.
    void keep_only(const std::function<bool(const std::string& policy)>& steers);

  private:
    struct Watched {
        /// Of connections; of CPU time where most of these come and go unseen; by those that wait.
        [[nodiscard]] std::optional<Unfair> judge() const;
        planner::AcceptShares shares{}, work{};
        planner::UnseenAccepts unseen{};
        planner::WaitingAccepts waiting{};
        Clock::duration pause{};  ///< the last one
        Clock::time_point seen{}; ///< with listeners that are steered
        Clock::time_point until = Clock::time_point::min();
    };
    std::map<std::string, std::map<Address, Watched>, std::less<>> policies_;
};

/// What the worker did that had too much.
[[nodiscard]] std::string to_string(const SteerGuard::Unfair& unfair);

} // namespace affinityd::app
