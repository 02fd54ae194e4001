// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/policy.hpp"

#include <string_view>

namespace affinityd::policy {

/// The key of a condition, as it is written.
[[nodiscard]] std::string_view field_name(Condition::Field field);

/// Calls `take(key, value)` for each key at the top that has words, or true and false, and nothing else to
/// it: the reader sets these, the printer prints them.
template <class Of, class Take>
void each_word(Of& policy, const Take& take) {
    take("exclusive", policy.exclusive);
    take("separate", policy.separate);
    take("steering", policy.steering);
    take("steer", policy.steer);
    take("drift", policy.drift);
    take("prior", policy.prior);
    take("on_stop", policy.on_stop);
    take("means", policy.means);
    take("memory", policy.memory);
}

} // namespace affinityd::policy
