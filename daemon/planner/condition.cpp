// SPDX-License-Identifier: Apache-2.0
#include "planner/condition.hpp"

#include "policy/cgroup_path.hpp"

#include <algorithm>
#include <array>

namespace affinityd::planner {

namespace {

using policy::Condition;
using policy::Selector;
using Field = Condition::Field;

constexpr std::array<std::string_view, 11> field_names{
    "comm", "exe", "cmdline", "unit", "cgroup", "user", "group", "container", "parent", "listen", "kthread"};

/// What reading the fact costs. 0: it is known already; 1: a small file; 2: a walk over all descriptors.
unsigned cost(const Selector& selector) {
    if (selector.op != Selector::Op::test) {
        unsigned worst = 0;
        for (const auto& child : selector.children)
            worst = std::max(worst, cost(child));
        return worst;
    }
    switch (selector.condition.field) {
    case Field::comm:
    case Field::kthread:
        return 0;
    case Field::listen:
        return 2;
    default:
        return 1;
    }
}

bool any_pattern(const Condition& condition, std::string_view text) {
    return std::ranges::any_of(condition.patterns,
                               [&](const auto& pattern) { return pattern.matches(text); });
}

bool any_port(const Condition& condition, const std::vector<std::uint16_t>& ports) {
    return std::ranges::any_of(ports, [&](std::uint16_t port) {
        return std::ranges::any_of(
            condition.ports, [&](const auto& range) { return range.first <= port && port <= range.second; });
    });
}

/// A container is named by its full id (by its name, for LXC), or by the twelve digits that its tools print.
std::vector<std::string> container_names(const inventory::ProcessFacts& process) {
    const auto names = policy::parse_cgroup_path(process.cgroup());
    if (names.container_id.empty()) return {};
    std::vector<std::string> texts{names.container_id, names.container_runtime + ":" + names.container_id};
    if (names.container_id.size() > 12) texts.push_back(names.container_id.substr(0, 12));
    return texts;
}

std::vector<std::string> texts_of(Field field, const inventory::ProcessFacts& process,
                                  const Lineage& lineage) {
    switch (field) {
    case Field::comm:
        return {process.comm()};
    case Field::exe:
        return {process.exe()};
    case Field::cmdline:
        return {process.cmdline()};
    case Field::unit:
        return unit_names(process);
    case Field::cgroup:
        return {process.cgroup()};
    case Field::user:
        return {process.user(), std::to_string(process.uid())};
    case Field::group:
        return {process.group(), std::to_string(process.gid())};
    case Field::container:
        return container_names(process);
    case Field::parent:
        return lineage.ancestor_policies(process);
    default:
        return {};
    }
}

bool test(const Condition& condition, const inventory::ProcessFacts& process, const Lineage& lineage) {
    switch (condition.field) {
    case Field::comm:
        return any_pattern(condition, process.comm());
    case Field::exe:
        return any_pattern(condition, process.exe());
    case Field::cmdline:
        return any_pattern(condition, process.cmdline());
    case Field::cgroup:
        return any_pattern(condition, process.cgroup());
    case Field::kthread:
        return process.is_kernel() == condition.flag;
    case Field::listen:
        return any_port(condition, process.listen_ports());
    default:
        return std::ranges::any_of(texts_of(condition.field, process, lineage),
                                   [&](const std::string& text) { return any_pattern(condition, text); });
    }
}

std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const auto& part : parts)
        text += (text.empty() ? "" : ", ") + part;
    return text;
}

std::string wanted_text(const Condition& condition) {
    std::vector<std::string> parts;
    for (const auto& pattern : condition.patterns)
        parts.push_back(pattern.text());
    for (const auto& [low, high] : condition.ports)
        parts.push_back(low == high ? std::to_string(low) : std::to_string(low) + "-" + std::to_string(high));
    if (condition.field == Field::kthread) parts.emplace_back(condition.flag ? "true" : "false");
    return joined(parts);
}

std::string found_text(const Condition& condition, const inventory::ProcessFacts& process,
                       const Lineage& lineage) {
    if (condition.field == Field::kthread) return process.is_kernel() ? "true" : "false";
    if (condition.field != Field::listen) return joined(texts_of(condition.field, process, lineage));
    std::vector<std::string> ports;
    for (const auto port : process.listen_ports())
        ports.push_back(std::to_string(port));
    return joined(ports);
}

/// For a group no single child of which decided.
Failure group_failure(const Selector& selector) {
    const bool none = selector.op == Selector::Op::none;
    return {none ? "not" : "any", none ? "none of its conditions to hold" : "one of its conditions to hold",
            none ? "one holds" : "none holds"};
}

/// The first child, in order of cost, for which `holds` is `value`; null if there is none.
const Selector* first_child(const Selector& selector, bool value, const inventory::ProcessFacts& process,
                            const Lineage& lineage) {
    for (unsigned level = 0; level <= 2; ++level)
        for (const auto& child : selector.children)
            if (cost(child) == level && holds(child, process, lineage) == value) return &child;
    return nullptr;
}

} // namespace

std::vector<std::string> unit_names(const inventory::ProcessFacts& process) {
    auto names = policy::parse_cgroup_path(process.cgroup());
    std::vector<std::string> all = std::move(names.slices);
    if (!names.unit.empty()) all.insert(all.begin(), std::move(names.unit));
    return all;
}

bool holds(const Selector& selector, const inventory::ProcessFacts& process, const Lineage& lineage) {
    switch (selector.op) {
    case Selector::Op::test:
        return test(selector.condition, process, lineage);
    case Selector::Op::all:
        return first_child(selector, false, process, lineage) == nullptr;
    case Selector::Op::any:
        return first_child(selector, true, process, lineage) != nullptr;
    case Selector::Op::none:
        return first_child(selector, true, process, lineage) == nullptr;
    }
    return false;
}

std::optional<Failure> first_failure(const Selector& selector, const inventory::ProcessFacts& process,
                                     const Lineage& lineage) {
    if (holds(selector, process, lineage)) return std::nullopt;
    if (selector.op == Selector::Op::test) {
        const auto& condition = selector.condition;
        return Failure{std::string(field_names[static_cast<std::size_t>(condition.field)]),
                       wanted_text(condition), found_text(condition, process, lineage)};
    }
    if (selector.op == Selector::Op::all)
        return first_failure(*first_child(selector, false, process, lineage), process, lineage);
    return group_failure(selector);
}

} // namespace affinityd::planner
