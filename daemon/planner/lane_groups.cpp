// SPDX-License-Identifier: Apache-2.0
#include "planner/lane_groups.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace affinityd::planner {

namespace {

/// The lanes of a policy as it was placed last: who has taken his is not among them any more.
class Earlier {
  public:
    explicit Earlier(const ResolvedPolicy* before) {
        if (before == nullptr) return;
        for (const auto& lanes : before->nics) {
            for (const auto& id : lanes.ids) {
                by_index_.emplace(id.ifindex, all_.size());
                if (!id.device.empty()) by_device_.emplace(id.device, all_.size());
            }
            all_.push_back(&lanes);
        }
    }
    [[nodiscard]] const NicLanes* take(const Interfaces::Group& group);

  private:
    std::vector<const NicLanes*> all_; ///< null: taken
    std::unordered_multimap<unsigned, std::size_t> by_index_;
    std::unordered_multimap<std::string_view, std::size_t> by_device_;
};

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

/// Those that are this group's now; nullptr: none that it might keep.
const NicLanes* Earlier::take(const Interfaces::Group& group) {
    std::size_t best = all_.size();
    unsigned most = 0;
    const auto consider = [&](const auto& known, const auto& key) {
        const auto [begin, end] = known.equal_range(key);
        for (auto at = begin; at != end; ++at) {
            const auto which = at->second;
            const auto score = all_[which] == nullptr ? 0 : common(group, *all_[which]);
            if (score > most || (score > 0 && score == most && which < best)) { // of equals the first
                best = which;
                most = score;
            }
        }
    };
    for (const auto* nic : group.nics) {
        consider(by_index_, nic->ifindex);
        consider(by_device_, std::string_view(nic->device));
    }
    if (best == all_.size()) return nullptr;
    const auto* lanes = std::exchange(all_[best], nullptr);
    return lanes->is_guess && group.tasks > 0 ? nullptr : lanes;
}

} // namespace

std::vector<unsigned> LaneGroup::kept_work() const {
    std::vector<unsigned> cpus;
    for (const auto& lane : kept())
        cpus.push_back(lane.cpus.first());
    const auto interrupts = kept_interrupts();
    for (std::size_t i = 0; i < std::min(kept().size(), interrupts.size()); ++i)
        if (interrupts[i] != cpus[i]) cpus.push_back(interrupts[i]);
    return cpus;
}

std::vector<LaneGroup> lane_groups(const policy::Policy& policy, const Interfaces& interfaces,
                                   const NicNames& nics, const NicUsage& usage,
                                   const ResolvedPolicy* before) {
    if (policy.model != policy::Model::irq && policy.model != policy::Model::full) return {};
    Earlier earlier(before);
    const bool is_full = policy.model == policy::Model::full;
    std::vector<LaneGroup> groups;
    for (auto& group : is_full ? interfaces.together(nics, policy, usage) : interfaces.apart(nics)) {
        const auto* lanes = earlier.take(group);
        groups.push_back({std::move(group), lanes});
    }
    return groups;
}

} // namespace affinityd::planner
