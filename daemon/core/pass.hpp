// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/commands.hpp"
#include "core/shared.hpp"
#include "policy/policy.hpp"
#include "status/changes.hpp"

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace affinityd::core {

/// Counts by policy what passes do, for those who wait for one, and what is placed for the first time, for
/// the log. The four ways tell it what they did; what they do because of events counts only as news.
class Placed {
  public:
    /// Something was asked for. The action has the subject's undo record until then.
    void carried(const planner::Action& action, const enforcer::Applied& applied);
    /// A subject was looked at, and has what its policy wants.
    void found_in_place(const machine::Subject& subject, std::string_view policy);
    /// A subject with a record keeps what another program has given it.
    void left(const std::string& policy);
    /// A subject was looked at, and is not to be asked for again now.
    void found_put_off(const machine::Subject& subject, std::string_view policy);

    /// The counts are dropped.
    void begin_pass();
    /// A pass may look at all queues twice, and begins anew if they are to be elsewhere.
    void begin_queues();
    /// Until its slice is over, a pass does all that is told.
    void use(bool is_in_pass) { is_in_pass_ = is_in_pass; }

    using Policies = std::map<std::string, status::PolicyChanges, std::less<>>;
    [[nodiscard]] const Policies& changes() const { return changes_; }
    [[nodiscard]] status::SubjectCounts put_back() const; ///< for all policies

    struct News {
        std::string policy;
        status::SubjectCounts placed;
    };
    /// Tasks placed for the first time that were not told: by the pass, and the first of each policy.
    [[nodiscard]] std::vector<News> take_news();
    /// Nothing is remembered of other policies.
    void drop_others(const policy::PolicySet& policies);

  private:
    struct Fresh {
        status::SubjectCounts placed;
        bool is_told = false; ///< what events place from now on is no news
    };
    [[nodiscard]] status::PolicyChanges& of(std::string_view policy);
    void count(const planner::Action& action, const enforcer::Applied& applied);

    Policies changes_;
    std::map<std::string, Fresh, std::less<>> fresh_;
    std::unordered_set<machine::Subject> counted_; ///< queues and units: each is once in a pass
    bool is_in_pass_ = false;
};

/// Answers those who wait for a pass with what it did, and tells the log what was placed for the first time.
class PassAnswers {
  public:
    explicit PassAnswers(Shared& shared) : shared_(shared) {}

    /// An answer that waits for a pass.
    struct Waiting {
        Answer answer;
        std::string headline{};     ///< the answer begins with it
        std::string fault{};        ///< the answer is an Error that begins with it; "": it is none
        bool is_of_release = false; ///< only what was put back matters
    };
    /// To be answered at the end of the next pass that begins.
    void add(Waiting waiting) { waiting_.push_back(std::move(waiting)); }
    /// A pass begins; one is under way at a time.
    void begin();
    /// The pass is over: answers those who waited when it began.
    void finish();
    /// Other policies are in force: an answer that waits waits for the pass that follows.
    void policies_changed(const policy::PolicySet& policies);
    /// The daemon ends: all are told, and no pass is counted any more.
    void give_up(const std::string& why);

    [[nodiscard]] Placed& placed() { return placed_; }

  private:
    void tell_news();

    Shared& shared_;
    Placed placed_;
    std::vector<Waiting> waiting_; ///< for the next pass
    std::vector<Waiting> joined_;  ///< for the one under way
};

} // namespace affinityd::core
