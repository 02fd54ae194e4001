// SPDX-License-Identifier: Apache-2.0
#include "planner/interfaces.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

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

} // namespace affinityd::planner
