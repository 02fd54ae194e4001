// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/accept_shares.hpp"

#include <cstddef>
#include <cstdint>
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

    /// `accepted`: connections that came to them since the last look, as AcceptShares::see() has it. For whom
    /// connections wait, but who takes none, hangs: he has not too many.
    void see(Time now, Counts waiting, Counts accepted);
    /// The part of the listeners for which connections wait, and how many listeners were there all the time.
    /// No value: it is not so, or nothing is known yet.
    [[nodiscard]] std::optional<AcceptShares::Share> one_sided() const;

  private:
    struct Look {
        Time at;
        Counts waiting, accepted;
    };
    /// What it has in these looks: how often it was known, how often some waited; and whether it may take
    /// some.
    struct Seen {
        std::size_t known = 0, with_some = 0;
        bool takes = false;
    };
    [[nodiscard]] Seen seen_of(std::uint64_t listener) const;
    std::deque<Look> looks_; ///< a second apart at least; the first one is a minute old, or the first of all
};

} // namespace affinityd::planner
