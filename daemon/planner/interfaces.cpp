// SPDX-License-Identifier: Apache-2.0
#include "planner/lanes.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

using netdev::Nic;
using policy::Policy;

/// A port of a guest is a policy's only where it is named in full.
bool is_named(const std::vector<policy::Pattern>& names, const Nic& nic) {
    const bool is_foreign = netdev::is_foreign_port(nic);
    return std::ranges::any_of(names, [&](const policy::Pattern& pattern) {
        return (pattern.is_literal() || !is_foreign) &&
               nic.is_called([&](std::string_view name) { return pattern.matches(name); });
    });
}

NicNames names_of(const std::vector<const Nic*>& nics) {
    NicNames names;
    for (const auto* nic : nics)
        names.push_back(nic->name);
    return names;
}

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
            if (is_named(policy.nics, nic)) meant.insert(nic.name);
    } else if (const auto served = usage.find(policy.name); served != usage.end()) {
        for (const auto& [readers, count] : served->second)
            meant.insert(readers.nics.begin(), readers.nics.end());
    }
    if (policy.model == policy::Model::full && policy.nics_auto)
        for (const auto& rule : policy.threads)
            for (const auto& nic : machine_.nics)
                if (is_named(rule.nics, nic)) meant.insert(nic.name);
    std::set<const Nic*> wanted;
    for (const auto& nic : machine_.nics)
        if (meant.contains(nic.name))
            for (const auto* physical : stacks_.under(nic))
                wanted.insert(physical);
    return names_of({wanted.begin(), wanted.end()}); // they are in one array: in its order
}

NicNames Interfaces::called(const std::vector<policy::Pattern>& names) const {
    NicNames found;
    for (const auto& nic : machine_.nics)
        if (is_named(names, nic)) found.push_back(nic.name);
    return physical(found);
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

std::vector<Interfaces::Group> Interfaces::together(const NicNames& names, const Policy& policy,
                                                    const NicUsage& usage) const {
    std::unordered_map<std::string_view, std::size_t> number;
    for (const auto& name : names)
        number.try_emplace(name, number.size());
    std::vector<std::size_t> set_of(names.size()); // each is named by its least member
    std::iota(set_of.begin(), set_of.end(), 0U);
    const auto join = [&](const NicNames& some) {
        std::optional<std::size_t> first;
        for (const auto& name : some)
            if (const auto found = number.find(name); found != number.end()) {
                first = first.value_or(found->second);
                const auto [low, high] = std::minmax({set_of[*first], set_of[found->second]});
                std::ranges::replace(set_of, high, low);
            }
        return first;
    };
    const bool is_shared = policy.model == policy::Model::full;
    if (is_shared) std::ranges::for_each(ports_, join);
    std::vector<std::pair<Readers, unsigned>> served;
    if (const auto found = usage.find(policy.name); is_shared && found != usage.end())
        for (const auto& [readers, count] : found->second) {
            auto nics = readers.nics.empty() ? names : physical(readers.nics); // any may serve them
            if (join(nics)) served.push_back({{std::move(nics), readers.rule, readers.cpuset}, count});
        }
    std::map<std::size_t, Group> groups;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (const auto* nic = stacks_.find(names[i])) groups[set_of[i]].nics.push_back(nic);
    std::vector<Group> result;
    for (auto& [first, group] : groups) {
        for (const auto& [readers, count] : served) {
            NicNames nics;
            for (const auto* nic : group.nics)
                if (std::ranges::find(readers.nics, nic->name) != readers.nics.end())
                    nics.push_back(nic->name);
            if (!nics.empty()) group.readers[{std::move(nics), readers.rule, readers.cpuset}] += count;
        }
        result.push_back(std::move(group));
    }
    return result;
}

CpuSet Interfaces::side_of(const Nic& nic) const {
    const auto ports = std::ranges::find_if(
        ports_, [&](const NicNames& names) { return std::ranges::find(names, nic.name) != names.end(); });
    if (ports == ports_.end()) return machine::near_cpus(machine_, nic);
    std::map<CpuSet, int> votes;
    for (const bool with_spares : {false, true})
        for (const auto& name : *ports)
            if (const auto* port = stacks_.find(name);
                port != nullptr && (votes.empty() || !with_spares) && is_spare(*port) == with_spares) {
                const auto near = machine::near_cpus(machine_, *port);
                votes[near] += near == machine_.topology.online ? 0 : 1; // near all CPUs alike, it has no say
            }
    return std::ranges::min_element(
               votes, {}, [](const auto& vote) { return std::pair(-vote.second, vote.first.first()); })
        ->first;
}

void count_readers(const Policy& policy, const Interfaces& interfaces, const ReadingProcess& process,
                   NicUsage& into) {
    std::map<std::optional<std::size_t>, unsigned> counts;
    for (const auto& rule : process.rules)
        ++counts[rule];
    for (const auto& [rule, threads] : counts) {
        const auto& placement = rule ? policy.threads[*rule].placement : policy.placement;
        auto nics = rule ? interfaces.called(policy.threads[*rule].nics) : NicNames{};
        if (nics.empty() && process.nics == nullptr && policy.nics_auto) continue; // none serves it
        if (nics.empty() && process.nics != nullptr) nics = *process.nics;
        const bool is_each = placement.spread != policy::Spread::any;
        into[policy.name][{std::move(nics), rule ? static_cast<unsigned>(*rule) + 1 : 0,
                           process.cpuset == nullptr ? CpuSet() : *process.cpuset}] += is_each ? threads : 1;
    }
}

const NicLanes* earlier_lanes(const Interfaces::Group& group, const ResolvedPolicy* before) {
    const NicLanes* best = nullptr;
    if (before != nullptr)
        for (const auto& lanes : before->nics)
            if (common(group, lanes) > (best == nullptr ? 0 : common(group, *best))) best = &lanes;
    return best;
}

namespace {

std::string some_of(const std::vector<std::string>& names) {
    constexpr std::size_t most = 6;
    auto text =
        fmt::format("{}", fmt::join(names.begin(), names.begin() + std::min(names.size(), most), ", "));
    return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

/// Handlers whose labels hold the interface's name or its device's. `at_front`: only those that begin with
/// it.
std::vector<std::string> labels_with_name(const machine::Machine& machine, const Nic& nic, bool at_front) {
    const auto place = nic.device.substr(nic.device.rfind('/') + 1);
    const auto holds = [&](const std::string& label, const std::string& name) {
        if (!at_front) return label.contains(name);
        return label.starts_with(name) && std::isalnum(static_cast<unsigned char>(label[name.size()])) == 0;
    };
    const auto vectors = machine.vectors_of(nic.name);
    std::vector<std::string> labels;
    for (const auto& line : machine.irqs.irqs)
        for (const auto& label : line.actions)
            if ((holds(label, nic.name) || holds(label, place)) &&
                std::ranges::find(vectors, line.number, &machine::Vector::irq) == vectors.end())
                labels.push_back(label);
    return labels;
}

} // namespace

std::vector<Problem> interrupt_problems(const ResolvedPolicy& resolved, const machine::Machine& machine,
                                        const Nic& nic) {
    constexpr const char* say_label =
        "add the form of its labels to /etc/affinityd/labels.d: affinityd.policy(5)";
    std::vector<Problem> problems;
    if (nic.device.empty() || !nic.up) return problems;
    const auto add = [&](std::string text, std::string hint) {
        problems.push_back({resolved.policy->name, nic.name, std::move(text), std::move(hint)});
    };
    bool has_data = false;
    std::vector<std::string> unknown, fixed;
    std::string controller;
    for (const auto& vector : machine.vectors_of(nic.name)) {
        if (!irq::is_data(vector.kind)) continue;
        has_data = true;
        if (!vector.known) unknown.push_back(vector.label);
        const auto* line = machine.irqs.find(vector.irq);
        if (line == nullptr || !line->fixed) continue;
        fixed.push_back(std::to_string(vector.irq));
        controller = line->chip;
    }
    const std::string driver = nic.driver.empty() ? "unknown" : nic.driver;
    if (!has_data) {
        const auto labels = labels_with_name(machine, nic, false);
        add(fmt::format("none of its interrupts is known (driver {}): only XPS is set; {}", driver,
                        labels.empty() ? "no label holds its name or its device's"
                                       : "labels with its name: " + some_of(labels)),
            labels.empty() ? "affinityctl irqs" : say_label);
        return problems;
    }
    if (!unknown.empty())
        add(fmt::format(
                "the labels of {} of its interrupts are not known (driver {}): {}; they are dealt out in "
                "order of their numbers",
                unknown.size(), driver, some_of(unknown)),
            say_label);
    // A device that lists its interrupts has no others.
    const auto others = nic.msi_irqs.empty() ? labels_with_name(machine, nic, true) : NicNames();
    if (!others.empty())
        add(fmt::format(
                "{} of its interrupts stay where they are, as their labels are not known (driver {}): {}",
                others.size(), driver, some_of(others)),
            say_label);
    if (!fixed.empty())
        add(fmt::format("its interrupts {} stay where they are: their controller ({}) refuses every mask",
                        some_of(fixed), controller),
            "let RPS hand packets on, or place the tasks where the interrupts are");
    if (nic.is_sub_function && nic.msi_irqs.empty())
        add("the kernel does not list a sub-function's own interrupts: it has those of all sub-functions "
            "of " +
                nic.pci,
            "Linux 6.11 and later list them");
    return problems;
}

} // namespace affinityd::planner
