// SPDX-License-Identifier: Apache-2.0
#include "planner/interfaces.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace affinityd::planner {

namespace {

using netdev::Nic;
using policy::Policy;

/// A port of a guest is a policy's only where it is named in full.
bool is_named(const Policy& policy, const Nic& nic) {
    const bool is_foreign = netdev::is_foreign_port(nic);
    return std::ranges::any_of(policy.nics, [&](const policy::Pattern& pattern) {
        return (pattern.is_literal() || !is_foreign) &&
               nic.is_called([&](std::string_view name) { return pattern.matches(name); });
    });
}

/// Sets that are joined step by step.
class Union {
  public:
    explicit Union(std::size_t size) : first_(size) { std::iota(first_.begin(), first_.end(), 0U); }
    /// The least member of the set that has it.
    [[nodiscard]] std::size_t first_of(std::size_t member) const {
        while (first_[member] != member)
            member = first_[member];
        return member;
    }
    void join(std::size_t one, std::size_t other) {
        const auto [low, high] = std::minmax({first_of(one), first_of(other)}); // values, not references
        first_[high] = low;
    }

  private:
    std::vector<std::size_t> first_;
};

NicNames names_of(const std::vector<const Nic*>& nics) {
    NicNames names;
    for (const auto* nic : nics)
        names.push_back(nic->name);
    return names;
}

} // namespace

Interfaces::Interfaces(const machine::Machine& machine)
    : machine_(machine), stacks_(machine.nics), spares_(stacks_.spares()) {
    for (const auto& nic : machine.nics)
        if (!nic.lower.empty())
            if (auto names = names_of(stacks_.under(nic)); names.size() > 1) ports_.insert(std::move(names));
}

NicNames Interfaces::of(const Policy& policy, const NicUsage& usage) const {
    std::set<std::string_view> meant;
    if (!policy.nics_auto) {
        for (const auto& nic : machine_.nics)
            if (is_named(policy, nic)) meant.insert(nic.name);
    } else if (const auto served = usage.find(policy.name); served != usage.end()) {
        for (const auto& [names, tasks] : served->second)
            meant.insert(names.begin(), names.end());
    }
    std::set<const Nic*> wanted;
    for (const auto& nic : machine_.nics)
        if (meant.contains(nic.name))
            for (const auto* physical : stacks_.under(nic))
                wanted.insert(physical);
    return names_of({wanted.begin(), wanted.end()}); // they are in one array: in its order
}

NicNames Interfaces::hollow(const Policy& policy) const {
    NicNames names;
    if (policy.nics_auto) return names;
    for (const auto& pattern : policy.nics) {
        const auto* nic = pattern.is_literal() ? stacks_.find(pattern.text()) : nullptr;
        if (nic != nullptr && stacks_.under(*nic).empty()) names.push_back(nic->name);
    }
    return names;
}

NicNames Interfaces::physical(const NicNames& names) const {
    NicNames found;
    for (const auto& name : names)
        if (const auto* nic = stacks_.find(name))
            for (auto& other : names_of(stacks_.under(*nic)))
                found.push_back(std::move(other));
    return found;
}

std::vector<Interfaces::Group> Interfaces::apart(const NicNames& names) const {
    std::vector<Group> groups;
    for (const auto& name : names)
        if (const auto* nic = stacks_.find(name)) groups.push_back({{nic}, 0});
    return groups;
}

std::vector<Interfaces::Group> Interfaces::together(const NicNames& names, const Policy& policy,
                                                    const NicUsage& usage) const {
    std::unordered_map<std::string_view, std::size_t> number;
    for (const auto& name : names)
        number.try_emplace(name, number.size());
    Union sets(names.size());
    const auto join = [&](const NicNames& some) {
        std::optional<std::size_t> first;
        for (const auto& name : some)
            if (const auto found = number.find(name); found != number.end()) {
                sets.join(first.value_or(found->second), found->second);
                first = found->second;
            }
        return first;
    };
    for (const auto& ports : ports_)
        join(ports);
    struct Served {
        std::optional<std::size_t> by; ///< one of the interfaces; no value: it is not known which
        unsigned tasks;
    };
    std::vector<Served> all;
    if (const auto served = usage.find(policy.name); served != usage.end())
        for (const auto& [some, tasks] : served->second) {
            const auto by = join(physical(some));
            if (by || some.empty()) all.push_back({by, tasks});
        }
    std::map<std::size_t, Group> groups;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (const auto* nic = stacks_.find(names[i])) groups[sets.first_of(i)].nics.push_back(nic);
    std::vector<Group> result;
    for (auto& [first, group] : groups) {
        for (const auto& [by, tasks] : all)
            if (!by || sets.first_of(*by) == first) group.tasks += tasks;
        result.push_back(std::move(group));
    }
    return result;
}

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
