// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/diagnostic.hpp"

#include <vector>

namespace affinityd::policy {

/// What can be said about policies side by side without a machine: names in `parent` that no policy has,
/// rings of `parent` that nothing can enter, policies that an earlier one leaves nothing to. The findings
/// have no source lines yet.
void check_set(const PolicySet& set, std::vector<Diagnostic>& out);

} // namespace affinityd::policy
