// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/port_sample.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace affinityd::planner {

/// How the connections of one address are shared among the workers that take them, over the last minute. A
/// client on this machine, or behind one queue, has all its packets taken in on one CPU: a listener that
/// prefers that CPU gets all of its connections. Only what comes counts: connections that were there before
/// stay where they are, however listeners are told.
class AcceptShares {
  public:
    /// Of any clock that only goes forward.
    using Time = std::chrono::milliseconds;
    static constexpr Time window = std::chrono::seconds(60);
    /// Between two looks. Whoever did not look for longer has not seen the minute, or the clock has jumped.
    static constexpr Time longest_rest = std::chrono::seconds(45);
    /// For which a listener may be there without being read.
    static constexpr Time longest_unread = std::chrono::seconds(90);

    /// How many connections came to each listener since it was read before, by its cookie; no value: it was
    /// not read now. What came before the first look at a listener does not count.
    using Counts = std::map<std::uint64_t, std::optional<std::size_t>>;
    /// `sample`: from which all of these were estimated; chance has had a hand in that, too.
    void see(Time now, const Counts& counts, const inventory::PortSample& sample = {});

    struct Share {
        double busiest = 0; ///< of all connections, 0 to 1
        std::size_t workers = 0;
    };
    /// At the last look: the busiest worker has more than twice its share (of two or three workers: more than
    /// half of what the others should have, too) of what came in the last minute, and chance does not explain
    /// it. How many looks there were in that time says nothing; what came between two looks counts evenly
    /// over that time. Only listeners that were there for all of it are compared, as a server that is
    /// restarted or reloaded has other workers then; and only if no more than a quarter of them are new,
    /// since a few that are left say little of all. A worker that is replaced again and again does not keep
    /// the others from it. No value: so it is not, or nothing is known yet.
    [[nodiscard]] std::optional<Share> unfair() const;

  private:
    struct Piece {
        Time from, until;
        std::size_t accepted = 0;
    };
    struct History {
        Time begun; ///< what came before is not known
        bool is_there = true;
        std::deque<Piece> pieces; ///< without gaps
        [[nodiscard]] Time last() const { return pieces.empty() ? begun : pieces.back().until; }
        void add(Time now, std::size_t accepted);
        /// If it began after `from`, as if it had gone on like that before.
        [[nodiscard]] double between(Time from, Time until) const;
    };
    struct Sample {
        Time at;
        inventory::PortSample of;
    };
    void note(Time now, std::uint64_t listener, std::optional<std::size_t> accepted);
    /// Of the estimates of what came after `from`.
    [[nodiscard]] double variance_since(Time from) const;
    std::map<std::uint64_t, History> listeners_;
    std::deque<Sample> samples_; ///< of the looks of the last minutes
    std::size_t there_ = 0;      ///< listeners, at the last look
    Time before_{}, now_{};      ///< the last two looks
};

/// The chance that `least` or more of `all` things, each by itself, fall to somebody who has `share` (0 to 1)
/// of the chances. Source: the binomial distribution.
[[nodiscard]] double binomial_tail(std::size_t all, std::size_t least, double share);

} // namespace affinityd::planner
