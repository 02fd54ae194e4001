// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace affinityd::planner {

/// How the connections of one address are shared among the workers that take them, over the last minute. A
/// client on this machine, or behind one queue, has all its packets taken in on one CPU: a listener that
/// prefers that CPU gets all of its connections.
class AcceptShares {
  public:
    /// Of any clock that only goes forward.
    using Time = std::chrono::milliseconds;
    static constexpr Time window = std::chrono::seconds(60);

    /// How many connections the worker of each listener has open now, by the listener's cookie.
    using Counts = std::map<std::uint64_t, std::size_t>;
    void see(Time now, Counts counts);

    struct Share {
        double busiest = 0; ///< of all connections, 0 to 1
        std::size_t workers = 0;
    };
    /// The busiest worker has more than twice its share (of two or three workers: more than half of what the
    /// others should have, too), over the whole window, and chance does not explain it. Only listeners that
    /// were there for all of it are compared, as a server that is restarted or reloaded has other workers
    /// then; and only if no more than a quarter of them are new, since a few that are left say little of all.
    /// A worker that is replaced again and again does not keep the others from it. No value: so it is not, or
    /// nothing is known yet.
    [[nodiscard]] std::optional<Share> unfair(Time now) const;

  private:
    struct Look {
        Time at;
        Counts counts;
    };
    std::deque<Look> looks_; ///< the first may be older than the window
};

/// The chance that `least` or more of `all` things, each by itself, fall to somebody who has `share` (0 to 1)
/// of the chances. Source: the binomial distribution.
[[nodiscard]] double binomial_tail(std::size_t all, std::size_t least, double share);

} // namespace affinityd::planner
