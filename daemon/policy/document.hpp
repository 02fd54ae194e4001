// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/fields.hpp"
#include "policy/policy.hpp"

#include <vector>

namespace affinityd::policy {

// The parts of one policy file; each reports what is wrong and gives what could be read.
[[nodiscard]] Policy read_document(const Node& root, Report& report);
[[nodiscard]] Selector read_match(const Node& map, Report& report);
[[nodiscard]] std::vector<ThreadRule> read_threads(const Fields::Entry& entry, const Placement& standard,
                                                   Report& report);

} // namespace affinityd::policy
