// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/judgement.hpp"
#include "policy/policy.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::planner {

/// One of the ways to place a policy's programs that `affinity: auto` tries.
struct AutoCandidate {
    policy::Model model = policy::Model::none;
    policy::Steer steer = policy::Steer::none; ///< of `full`; automatic: as the policy says
    friend bool operator==(const AutoCandidate&, const AutoCandidate&) = default;
};
/// "none", "process", "full", "full with steer"
[[nodiscard]] std::string_view to_string(const AutoCandidate& candidate);
/// No value: there is no such one.
[[nodiscard]] std::optional<AutoCandidate> candidate_of(std::string_view text);

/// Tries the candidates in turn, in rounds of equal length, and compares their costs by the traffic that
/// there is. Pure: it is told what happened, and says which candidate is to be in force.
///
/// A block is one round of each candidate, in an order that turns round with each block, so that a drift does
/// not favour any. The first seconds of a round do not count. After 6, 12, 24 ... 192 blocks all are compared
/// with `none`; a candidate that cannot be 3 % cheaper any more drops out. When one is shown to be, as many
/// blocks again decide which of those that are is the cheapest. A choice from before stays unless it is shown
/// to be no good, or another to be 3 % cheaper than it.
class AffinityTrial {
  public:
    struct End {
        bool is_decided = false; ///< false: it was broken off, as the traffic ended
        AutoCandidate choice;
        std::string why; ///< with figures
    };

    /// `candidates`: the first is `none`. `before`: the choice until now. `round`: seconds.
    AffinityTrial(const std::vector<AutoCandidate>& candidates, const AutoCandidate& before, double round);

    /// To be in force now; with end(), its choice.
    [[nodiscard]] const AutoCandidate& present() const;
    /// The growth of the counters since the last call, all of it under present().
    void add(const Effect& growth);
    [[nodiscard]] const std::optional<End>& end() const { return end_; }
    [[nodiscard]] std::size_t rounds() const { return rounds_; } ///< that are over, and count
    [[nodiscard]] std::size_t candidates() const { return sides_.size(); }
    [[nodiscard]] std::size_t next_look() const { return next_look_; } ///< after so many rounds of each
    [[nodiscard]] double bytes_per_second() const;                     ///< over all rounds that count

  private:
    struct Side {
        AutoCandidate candidate;
        std::vector<Effect> rounds;
        bool is_out = false;
    };
    void end_round();
    void begin_block();
    void look();
    [[nodiscard]] measure::Interval change(const Side& from, const Side& to) const;
    [[nodiscard]] const Side* best() const;
    [[nodiscard]] std::string figures() const;
    void finish(bool is_decided, const AutoCandidate& choice, std::string why);

    std::vector<Side> sides_; ///< the first is `none`
    AutoCandidate before_;
    double round_;
    std::vector<std::size_t> order_; ///< of the sides in the present block
    std::size_t place_ = 0;          ///< in it
    std::size_t blocks_ = 0, rounds_ = 0;
    std::size_t next_look_;
    std::size_t decide_at_ = 0; ///< blocks; 0: nothing is shown yet
    unsigned idle_ = 0;         ///< rounds without traffic, one after the other
    double skipped_ = 0;        ///< seconds of this round that did not count
    Effect growth_;             ///< of this round
    std::optional<End> end_;
};

/// The basis of a choice; if it changes, the choice may be another.
struct ChoiceBasis {
    std::uint64_t text_hash = 0; ///< of the policy
    std::uint64_t machine = 0;   ///< hash of CPUs, interfaces and their queues
    double bytes_per_second = 0; ///< of its traffic
};

/// The choice in force, and how it came about.
struct AutoChoice {
    AutoCandidate candidate;
    std::string why;        ///< with figures
    std::int64_t time = 0;  ///< of the end of the trial, seconds since 1970 (UTC)
    unsigned confirmed = 0; ///< so many trials in a row changed nothing
    ChoiceBasis basis;
};

/// True if it is to be tried again: the policy, the machine or the traffic (to less than half, or more than
/// double) has changed, and it has lasted an hour; each time in a row that other traffic changed nothing, the
/// pause doubles, up to five days.
[[nodiscard]] bool is_due(const AutoChoice& choice, const ChoiceBasis& now, std::int64_t time);

/// Enough to tell the cost of rounds of so many seconds.
[[nodiscard]] bool is_traffic_enough(double bytes_per_second, double round);

} // namespace affinityd::planner
