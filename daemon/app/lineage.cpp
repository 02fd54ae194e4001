// SPDX-License-Identifier: Apache-2.0
#include "app/lineage.hpp"

#include "inventory/process_files.hpp"

namespace affinityd::app {

std::vector<std::string> ProcessLineage::ancestor_policies(const inventory::ProcessFacts& process) const {
    std::vector<std::string> names;
    for (const int pid : inventory::read_ancestors(root_, process.parent()))
        if (const auto* known = tasks_.find(pid);
            known != nullptr && known->policy < policies_.policies.size())
            names.push_back(policies_.policies[known->policy].name);
    return names;
}

} // namespace affinityd::app
