// SPDX-License-Identifier: Apache-2.0
#include "planner/lane_groups.hpp"

#include <algorithm>

namespace affinityd::planner {

namespace {

using Earlier = std::vector<const NicLanes*>;

/// How much a group and earlier lanes have in common. An interface's number survives a renaming, its device
/// also an absence; but a device may have several interfaces.
unsigned common(const Interfaces::Group& group, const NicLanes& lanes) {
    unsigned score = 0;
    for (const auto* nic : group.nics)
        for (const auto& id : lanes.ids) {
            if (id.ifindex == nic->ifindex) score += 2;
            if (!id.device.empty() && id.device == nic->device) score += 1;
        }
    return score;
}

/// Those of the earlier lanes that are this group's now; they are taken out.
const NicLanes* taken(Earlier& earlier, const Interfaces::Group& group) {
    const auto best =
        std::ranges::max_element(earlier, {}, [&](const auto* lanes) { return common(group, *lanes); });
    if (best == earlier.end() || common(group, **best) == 0) return nullptr;
    const auto* lanes = *best;
    earlier.erase(best);
    return lanes->is_guess && group.tasks > 0 ? nullptr : lanes;
}

} // namespace

std::vector<LaneGroup> lane_groups(const policy::Policy& policy, const Interfaces& interfaces,
                                   const NicNames& nics, const NicUsage& usage,
                                   const ResolvedPolicy* before) {
    if (policy.model != policy::Model::irq && policy.model != policy::Model::full) return {};
    Earlier earlier;
    if (before != nullptr)
        for (const auto& lanes : before->nics)
            earlier.push_back(&lanes);
    const bool is_full = policy.model == policy::Model::full;
    std::vector<LaneGroup> groups;
    for (auto& group : is_full ? interfaces.together(nics, policy, usage) : interfaces.apart(nics)) {
        const auto* lanes = taken(earlier, group);
        groups.push_back({std::move(group), lanes});
    }
    return groups;
}

} // namespace affinityd::planner
