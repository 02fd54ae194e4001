// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/subjects.hpp"

#include "host/root.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/process_scan.hpp"
#include "planner/matcher.hpp"

#include <algorithm>
#include <functional>

namespace affinityctl {

namespace inventory = affinityd::inventory;

namespace {

affinityd::Result<std::vector<int>>
processes_where(const affinityd::host::Root& root,
                const std::function<bool(const inventory::ProcessScan&)>& is_meant) {
    const auto pids = inventory::list_pids(root);
    if (!pids) return std::unexpected(pids.error());
    std::vector<int> found;
    for (const int pid : *pids)
        if (const auto scan = inventory::ProcessScan::open(root, pid).value_or(std::nullopt);
            scan && is_meant(*scan))
            found.push_back(pid);
    return found;
}

} // namespace

affinityd::Result<std::vector<int>> processes_of_unit(const affinityd::host::Root& root,
                                                      const std::string& unit) {
    return processes_where(root, [&](const inventory::ProcessScan& scan) {
        const auto names = affinityd::planner::unit_names(scan.facts());
        return std::ranges::find(names, unit) != names.end();
    });
}

affinityd::Result<std::vector<int>> processes_of_name(const affinityd::host::Root& root,
                                                      const std::string& name) {
    return processes_where(root, [&](const inventory::ProcessScan& scan) { return scan.comm() == name; });
}

} // namespace affinityctl
