// SPDX-License-Identifier: Apache-2.0
#include "planner/shared_lines.hpp"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

using machine::Machine;

/// The targets of one line, the one that decides first.
using Sharers = std::vector<QueueTarget*>;

const IrqMask* line_of(const QueueTarget& target) {
    const auto* irq = std::get_if<IrqMask>(&target.subject);
    return irq != nullptr && irq->is_line ? irq : nullptr;
}

/// False while its link is down and its handler is freed: the line's other handlers stand for it then.
bool has_handler(const Machine& machine, const QueueTarget& target) {
    const auto& label = line_of(target)->label;
    if (label == target.nic) return true;
    if (machine.nic(label) != nullptr) return false;
    // Named after the driver, or a handler of another device altogether.
    const auto* nic = machine.nic(target.nic);
    return nic == nullptr || nic->up;
}

std::string list(const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text;
}

/// Whom else the line serves: interfaces with their policies, and the names of other handlers.
std::string others(const irq::Irq& line, const Sharers& sharers, const QueueTarget& target) {
    std::vector<std::string> names;
    for (const auto* other : sharers)
        if (other->nic != target.nic) names.push_back(other->nic + " of policy " + other->policy);
    for (const auto& action : line.actions) {
        const bool is_told = action == target.nic || action == line_of(target)->label ||
                             std::ranges::find(names, action) != names.end() ||
                             std::ranges::find(sharers, action, &QueueTarget::nic) != sharers.end();
        if (!is_told) names.push_back(action);
    }
    return list(names);
}

void settle(const Machine& machine, const irq::Irq& line, Sharers sharers, Placements& into) {
    std::ranges::stable_partition(sharers, [&](const auto* target) { return has_handler(machine, *target); });
    const auto& first = *sharers.front();
    for (unsigned rank = 0; auto* target : sharers) {
        target->rank = rank++;
        target->shared_with = others(line, sharers, *target);
        if (target->rank == 0 || target->wanted == first.wanted) continue;
        if (target->policy != first.policy)
            into.problems.push_back(
                {target->policy, target->nic,
                 fmt::format(
                     "its interrupt {} is shared with {} of policy {}, which comes first: it is on CPU "
                     "{} and not on CPU {}",
                     line.number, first.nic, first.policy, first.wanted.to_string(),
                     target->wanted.to_string()),
                 "let one policy place both interfaces"});
    }
    for (const int thread : line.threads)
        into.threads.insert_or_assign(thread, QueueThread{first.wanted.cpus(), first.policy, first.reason});
}

} // namespace

void settle_shared_lines(const Machine& machine, Placements& into) {
    std::map<unsigned, Sharers> lines;
    for (auto& target : into.queues)
        if (const auto* irq = line_of(target)) lines[irq->irq].push_back(&target);
    for (auto& [number, sharers] : lines) {
        const auto* line = machine.irqs.find(number);
        if (line != nullptr && (sharers.size() > 1 || line->actions.size() > 1))
            settle(machine, *line, std::move(sharers), into);
    }
}

const QueueTarget& decider(const Placements& placements, const QueueTarget& target,
                           const std::function<bool(std::string_view policy)>& is_released) {
    const auto* best = &target;
    if (target.rank == 0) return *best;
    for (const auto& other : placements.queues)
        if (other.rank < best->rank && other.subject == target.subject && !is_released(other.policy))
            best = &other;
    return *best;
}

} // namespace affinityd::planner
