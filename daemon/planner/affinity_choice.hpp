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

/// A way to place a policy's programs that `affinity: auto` tries.
struct AutoCandidate {
    policy::Model model = policy::Model::none;
    policy::Steer steer = policy::Steer::none; ///< of `full`; automatic: as the policy says
    friend bool operator==(const AutoCandidate&, const AutoCandidate&) = default;
};
/// "none", "process", "full", "full with steer"
[[nodiscard]] std::string_view to_string(const AutoCandidate& candidate);
/// No value: there is no such one.
[[nodiscard]] std::optional<AutoCandidate> candidate_of(std::string_view text);

/// Tries the candidates in turn (Alternation), and compares their costs by the traffic that there is. Pure.
///
/// After 6, 12, 24 ... 192 blocks all are compared with `none`; a candidate that cannot be 3 % cheaper any
/// more, or whose programs wait longer for a CPU, drops out. When one is shown to be, as many blocks again
/// decide which of those that are is the cheapest. A choice from before stays unless it is shown to be no
/// good, or another to be 3 % cheaper than it.
class AffinityTrial {
  public:
    struct End {
        bool is_decided = false; ///< false: it was broken off, as the traffic ended
        AutoCandidate choice;
        std::string why; ///< with figures
    };

    /// `candidates`: the first is `none`. `before`: the choice until now. `round`: seconds.
    AffinityTrial(std::vector<AutoCandidate> candidates, const AutoCandidate& before, double round);

    /// To be in force now; with end(), its choice.
    [[nodiscard]] const AutoCandidate& present() const {
        return end_ ? end_->choice : candidates_[turns_.present()];
    }
    [[nodiscard]] bool is_settling() const { return turns_.is_settling(); }
    /// The growth of the counters since the last call, all of it under present().
    void add(const Effect& growth);
    [[nodiscard]] const std::optional<End>& end() const { return end_; }
    [[nodiscard]] std::size_t rounds() const { return rounds_; } ///< that are over, and count
    [[nodiscard]] std::size_t candidates() const { return candidates_.size(); }
    [[nodiscard]] std::size_t next_look() const { return next_look_; } ///< after so many rounds of each
    [[nodiscard]] double bytes_per_second() const { return all_.bytes / all_.seconds; }

  private:
    void look();
    [[nodiscard]] measure::Interval change(std::size_t from, std::size_t to) const;
    [[nodiscard]] bool is_cheaper(std::size_t side) const;
    [[nodiscard]] AutoCandidate best() const;
    [[nodiscard]] std::string figures() const;

    std::vector<AutoCandidate> candidates_; ///< the first is `none`
    Alternation turns_;
    AutoCandidate before_;
    std::size_t rounds_ = 0, next_look_;
    Effect all_{.seconds = 1e-9}; ///< of all rounds that count
    std::size_t decide_at_ = 0;   ///< blocks; 0: nothing is shown yet
    unsigned idle_ = 0;           ///< rounds without traffic, one after the other
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

} // namespace affinityd::planner
