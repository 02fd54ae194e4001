// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/policy.hpp"

namespace affinityd::policy {

/// The one total order in which policies are asked: `default: true` last, then priority (higher first),
/// specificity (higher first), name (byte by byte). No two policies of a set are equal in it, since names are
/// unique.
[[nodiscard]] bool comes_before(const Policy& a, const Policy& b);

/// "*" and its repetitions.
[[nodiscard]] bool matches_everything(const Pattern& pattern);

} // namespace affinityd::policy
