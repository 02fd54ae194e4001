// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/enforcer.hpp"
#include "planner/action.hpp"
#include "planner/undo.hpp"
#include "policy/policy.hpp"
#include "status/changes.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace affinityd::app {

struct FenceResult;

/// Counts by policy what passes do, for those who wait for one, and what is placed for the first time, for
/// the log. The four ways tell it what they did; what they do because of events counts only as news.
class Placed {
  public:
    /// Something was asked for. The action has the subject's undo record until then.
    void carried(const planner::Action& action, const enforcer::Applied& applied);
    /// A subject was looked at, and has what its policy wants.
    void found_in_place(const machine::Subject& subject, std::string_view policy);
    /// A subject was looked at, and is not to be asked for again now.
    void found_put_off(const machine::Subject& subject, std::string_view policy);
    /// The answer of systemd about a unit, which may come after the pass.
    void answered(const std::string& unit, const std::string& policy, const FenceResult& result);

    /// What was counted is dropped.
    void begin_pass();
    /// A pass may look at all queues twice, and begins anew if they are to be elsewhere.
    void begin_queues();
    /// What is told from now on is done by a pass, until its slice is over.
    void use(bool is_in_pass) { is_in_pass_ = is_in_pass; }

    using Policies = std::map<std::string, status::PolicyChanges, std::less<>>;
    [[nodiscard]] const Policies& changes() const { return changes_; }

    struct News {
        std::string policy;
        status::SubjectCounts placed;
    };
    /// What was placed for the first time and was not told: by the pass, and whatever came first of a policy.
    [[nodiscard]] std::vector<News> take_news();
    /// Of policies that are none of these, nothing is remembered.
    void forget_others(const policy::PolicySet& policies);

  private:
    struct Fresh {
        status::SubjectCounts placed;
        bool is_told = false; ///< what events place from now on is no news
    };
    [[nodiscard]] status::PolicyChanges& of(std::string_view policy);
    void count(const planner::Action& action, std::string_view policy, const enforcer::Applied& applied);

    Policies changes_;
    std::map<std::string, Fresh, std::less<>> fresh_;
    std::unordered_set<machine::Subject> counted_; ///< queues and units: each is once in a pass
    bool is_in_pass_ = false;
};

/// Why `subject` was not changed, in a few words.
[[nodiscard]] std::string reason_of(const enforcer::Applied& applied);

} // namespace affinityd::app
