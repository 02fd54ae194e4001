// SPDX-License-Identifier: Apache-2.0
#include "app/lineage.hpp"

#include "inventory/lookup.hpp"

namespace affinityd::app {

std::vector<std::string> ProcessLineage::ancestor_policies(const inventory::ProcessFacts& process) const {
    constexpr unsigned deepest = 64; // process trees are shallow; also ends a loop in a recording
    std::vector<std::string> names;
    int pid = process.parent();
    for (unsigned depth = 0; pid > 0 && depth < deepest; ++depth) {
        if (const auto* known = tasks_.find(pid);
            known != nullptr && known->policy < policies_.policies.size())
            names.push_back(policies_.policies[known->policy].name);
        pid = inventory::read_parent(root_, pid).value_or(0);
    }
    return names;
}

} // namespace affinityd::app
