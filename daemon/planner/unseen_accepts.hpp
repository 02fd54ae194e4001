// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/accept_shares.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>

namespace affinityd::planner {

/// Whether most of the connections that were accepted in the last minute came and went between two looks, so
/// that nobody saw who took them.
class UnseenAccepts {
  public:
    using Time = AcceptShares::Time;
    static constexpr std::uint64_t fewest = 300; ///< in a minute: fewer say nothing

    /// `opened`: as inventory::AcceptSockets; `seen`: those of listeners that are compared, since the last
    /// look.
    void see(Time now, std::uint64_t opened, std::size_t seen);
    /// More than half.
    [[nodiscard]] bool are_most() const;

  private:
    struct Look {
        Time at;
        std::uint64_t opened = 0;
        std::size_t seen = 0;
    };
    std::deque<Look> looks_; ///< the first one is a minute old, or the first of all
};

} // namespace affinityd::planner
