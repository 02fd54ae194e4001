// SPDX-License-Identifier: Apache-2.0
#include "planner/lanes.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

/// False for a line that is known to be immovable, and comes to other CPUs only.
bool is_in_question(const irq::Irq& line, const CpuSet& isolated) {
    const bool is_movable = line.writable && !line.fixed;
    return is_movable || line.effective.value_or(*line.requested).intersects(isolated);
}

/// Adds targets behind those of policies, which decide as long as their policies are in force.
class Keeper {
  public:
    explicit Keeper(Placements& into) : into_(into), rest_(into.online - into.isolated) {
        for (const auto& target : into.queues)
            ++known_[target.subject];
        std::vector<std::string> names;
        for (const auto& claim : into.claims)
            if (into.find(claim.policy)->policy->isolate) names.push_back(claim.policy);
        if (names.empty()) return;
        policy_ = names.front();
        reason_ = fmt::format("kept off CPU{} {}: isolated by {}", into.isolated.count() == 1 ? "" : "s",
                              into.isolated.to_list(), fmt::join(names, ", "));
    }
    void add(Subject subject, std::string nic = {}) {
        const auto known = known_.find(subject);
        into_.queues.push_back({.subject = std::move(subject),
                                .wanted = rest_,
                                .nic = std::move(nic),
                                .policy = policy_,
                                .reason = reason_,
                                .rank = known == known_.end() ? 0 : known->second,
                                .off = into_.isolated});
    }

  private:
    Placements& into_;
    CpuSet rest_;
    std::unordered_map<Subject, unsigned> known_; ///< how many targets it has
    std::string policy_, reason_;
};

} // namespace

void keep_off_isolated(const machine::Machine& machine, Placements& into) {
    if (into.isolated.empty() || into.isolated.contains(into.online)) return;
    Keeper keeper(into);
    keeper.add(KernelMask{KernelMask::Of::interrupts});
    keeper.add(KernelMask{KernelMask::Of::work});
    const auto lines = machine::named_irqs(machine);
    for (const auto& line : machine.irqs.irqs)
        if (!line.actions.empty() && line.requested && is_in_question(line, into.isolated))
            keeper.add(lines.at(line.number));
    for (const auto& nic : machine.nics) {
        const bool is_virtual = nic.device.empty();
        const bool is_port =
            !is_virtual && std::ranges::count(machine.nics, nic.device, &netdev::Nic::device) > 1;
        for (const auto& queue : nic.queues)
            if (queue.direction == machine::Direction::rx && queue.steering)
                keeper.add(SteeringMask{is_virtual ? nic.name : nic.device, queue.direction, queue.index,
                                        nic.name, nic.ifindex, is_port, nic.folder},
                           nic.name);
    }
}

} // namespace affinityd::planner
