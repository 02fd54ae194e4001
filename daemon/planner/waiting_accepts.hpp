// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/accept_shares.hpp"

#include <cstddef>
#include <deque>
#include <optional>

namespace affinityd::planner {

/// Whether connections have waited for some listeners of an address for a whole minute, while nobody waited
/// for as many others or more: their workers have more to do than they can, and the others could help.
/// Whoever takes few connections a minute since each is slow shows by this alone that he gets too many.
class WaitingAccepts {
  public:
    using Time = AcceptShares::Time;
    using Counts = AcceptShares::Counts; ///< how many wait, by the listener's cookie; no value: not known
    static constexpr std::size_t fewest_looks = 5;

    void see(Time now, Counts waiting);
    /// The part of the listeners for which connections wait, and how many listeners were there all the time.
    /// No value: it is not so, or nothing is known yet.
    [[nodiscard]] std::optional<AcceptShares::Share> one_sided() const;

  private:
    struct Look {
        Time at;
        Counts waiting;
    };
    std::deque<Look> looks_; ///< the first one is a minute old, or the first of all
};

} // namespace affinityd::planner
