// SPDX-License-Identifier: Apache-2.0
#include "app/placed.hpp"

#include "app/units.hpp"

#include <algorithm>
#include <system_error>
#include <utility>
#include <variant>

namespace affinityd::app {

namespace {

/// On whose behalf it is, or was.
std::string_view policy_of(const planner::Action& action) {
    const auto* kept_off = std::get_if<planner::KeptOff>(&action.reason);
    if (kept_off != nullptr && !kept_off->by.empty()) return kept_off->by.front();
    return action.policy.empty() && action.record ? action.record->policy : action.policy;
}

bool is_kept_off(const planner::Action& action) {
    return std::holds_alternative<planner::KeptOff>(action.reason);
}

} // namespace

std::string reason_of(const enforcer::Applied& applied) {
    if (applied.outcome == enforcer::Outcome::unrecorded)
        return "the undo journal cannot be written: " + std::generic_category().message(applied.code);
    if (applied.code == 0) return std::string(to_string(applied.outcome));
    return std::generic_category().message(applied.code);
}

status::PolicyChanges& Placed::of(std::string_view policy) {
    const auto found = changes_.find(policy);
    return found != changes_.end() ? found->second : changes_[std::string(policy)];
}

void Placed::count(const planner::Action& action, std::string_view policy, const enforcer::Applied& applied) {
    const auto outcome = applied.outcome;
    if (enforcer::has_gone(outcome)) return;
    if (machine::is_queue(action.subject) && !counted_.insert(action.subject).second) return;
    auto& counts = of(policy);
    if (outcome == enforcer::Outcome::foreign) {
        ++counts.left;
    } else if (!enforcer::took_effect(outcome)) {
        ++(action.restore ? counts.not_put_back : counts.refused);
        if (counts.reason.empty()) counts.reason = reason_of(applied);
    } else if (action.restore) {
        counts.put_back.add(action.subject);
    } else if (is_kept_off(action)) {
        ++counts.kept_off;
    } else {
        counts.placed.add(action.subject);
    }
}

void Placed::carried(const planner::Action& action, const enforcer::Applied& applied) {
    if (is_in_pass_) count(action, policy_of(action), applied);
    if (action.record || action.restore || is_kept_off(action) || !enforcer::took_effect(applied.outcome))
        return;
    auto& fresh = fresh_[action.policy];
    if (is_in_pass_ || !fresh.is_told) fresh.placed.add(action.subject);
}

void Placed::found_in_place(const machine::Subject& subject, std::string_view policy) {
    if (!is_in_pass_ || (machine::is_queue(subject) && counted_.contains(subject))) return;
    of(policy).in_place.add(subject);
}

void Placed::found_put_off(const machine::Subject& subject, std::string_view policy) {
    // An interrupt that said in this very pass that it never moves is refused, and counted as that.
    if (is_in_pass_ && (!machine::is_queue(subject) || counted_.insert(subject).second)) ++of(policy).put_off;
}

void Placed::answered(const std::string& unit, const std::string& policy, const FenceResult& result) {
    if (result.state.empty() && !result.is_restored) return; // nothing wants it, and nothing was to be done
    if (!counted_.insert(machine::UnitCpuset{unit}).second) return;
    auto& counts = of(policy);
    if (result.is_restored) {
        ++counts.put_back.units;
    } else if (result.is_changed) {
        ++counts.placed.units;
        ++fresh_[policy].placed.units; // whether it is the first time or not: it is rare
    } else if (result.is_refused) {
        ++counts.refused;
        if (counts.reason.empty()) counts.reason = result.state;
    } else if (result.state == "in place") {
        ++counts.in_place.units;
    } else {
        ++counts.put_off;
    }
}

void Placed::begin_pass() {
    changes_.clear();
    counted_.clear();
}

void Placed::begin_queues() {
    for (auto& [policy, counts] : changes_) {
        counts.in_place.interrupts = 0;
        counts.in_place.steering = 0;
    }
}

std::vector<Placed::News> Placed::take_news() {
    std::vector<News> news;
    for (auto& [policy, fresh] : fresh_) {
        if (!fresh.placed.any()) continue;
        news.push_back({policy, std::exchange(fresh.placed, {})});
        fresh.is_told = true;
    }
    return news;
}

void Placed::forget_others(const policy::PolicySet& policies) {
    std::erase_if(fresh_, [&](const auto& entry) {
        return std::ranges::count(policies.policies, entry.first, &policy::Policy::name) == 0;
    });
}

} // namespace affinityd::app
