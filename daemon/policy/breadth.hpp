// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/pattern.hpp"
#include "policy/policy.hpp"

namespace affinityd::policy {

/// True if the pattern matches any text that is not empty, as far as samples show.
[[nodiscard]] bool matches_any_text(const Pattern& pattern);

/// True if the conditions leave nobody out, or only those that `not` names: what was written hardly says
/// whom the policy is for.
[[nodiscard]] bool is_for_everybody(const Selector& selector);

} // namespace affinityd::policy
