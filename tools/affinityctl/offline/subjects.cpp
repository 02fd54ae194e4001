// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/subjects.hpp"

#include "host/root.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/process_scan.hpp"
#include "planner/matcher.hpp"

#include <algorithm>

namespace affinityctl {

namespace inventory = affinityd::inventory;

affinityd::Result<std::vector<int>> processes_of_unit(const affinityd::host::Root& root,
                                                      const std::string& unit) {
    const auto pids = inventory::list_pids(root);
    if (!pids) return std::unexpected(pids.error());
    std::vector<int> found;
    for (const int pid : *pids) {
        const auto scan = inventory::ProcessScan::open(root, pid).value_or(std::nullopt);
        if (!scan) continue;
        const auto names = affinityd::planner::unit_names(scan->facts());
        if (std::ranges::find(names, unit) != names.end()) found.push_back(pid);
    }
    return found;
}

} // namespace affinityctl
