// SPDX-License-Identifier: Apache-2.0
#include "planner/joined.hpp"

#include "planner/matcher.hpp"
#include "policy/slot_names.hpp"

#include <algorithm>

namespace affinityd::planner {

namespace {

std::optional<std::size_t> rule_of_slot(const policy::Policy& policy, std::string_view slot) {
    const auto found = std::ranges::find(policy.threads, slot, &policy::ThreadRule::slot);
    if (slot.empty() || found == policy.threads.end()) return std::nullopt;
    return static_cast<std::size_t>(found - policy.threads.begin());
}

} // namespace

bool may_join(const policy::Policy& policy, std::string_view slot) {
    return std::ranges::find(policy.allow_join, slot) != policy.allow_join.end();
}

bool is_in_force(const policy::Policy& policy, const Joined* joined) {
    if (joined == nullptr || joined->policy != policy.name) return false;
    return joined->slot.empty() ? joined->serves && may_join(policy, policy::arrivals_slot)
                                : may_join(policy, joined->slot);
}

std::optional<std::size_t> rule_of(const policy::Policy& policy, std::string_view name, unsigned index,
                                   const Joined* joined) {
    if (is_in_force(policy, joined))
        if (const auto rule = rule_of_slot(policy, joined->slot)) return rule;
    return Matcher::thread_rule(policy, name, index);
}

} // namespace affinityd::planner
