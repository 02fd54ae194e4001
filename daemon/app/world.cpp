// SPDX-License-Identifier: Apache-2.0
#include "app/world.hpp"

#include "app/kernel_threads.hpp"
#include "host/root.hpp"
#include "irq/reader.hpp"
#include "netdev/reader.hpp"
#include "topology/reader.hpp"

#include <algorithm>

namespace affinityd::app {

World::World(policy::PolicySet policies, planner::Machine machine)
    : policies_(std::move(policies)), machine_(std::move(machine)), matcher_(policies_),
      placements_(planner::compile(policies_, machine_, serving_)) {}

void World::update(planner::Machine machine) {
    machine_ = std::move(machine);
    placements_ = planner::compile(policies_, machine_, serving_);
}

void World::update(planner::Serving serving) {
    serving_ = std::move(serving);
    placements_ = planner::compile(policies_, machine_, serving_);
}

bool World::asks_for_serving() const {
    return std::ranges::any_of(policies_.policies, [](const policy::Policy& policy) {
        return policy.model == policy::Model::full || policy.model == policy::Model::irq;
    });
}

Result<planner::Machine> read_machine(const host::Root& root) {
    auto topology = topology::read_topology(root);
    if (!topology) return std::unexpected(topology.error());
    auto nics = netdev::read_nics(root);
    if (!nics) return std::unexpected(nics.error());
    auto irqs = irq::read_interrupts(root);
    if (!irqs) return std::unexpected(irqs.error());
    planner::Machine machine{std::move(*topology), std::move(*nics), std::move(*irqs), {}};
    if (const auto entries = root.proc().number("sys/net/core/rps_sock_flow_entries");
        entries && *entries >= 0 && *entries <= 0xffffffffLL)
        machine.flow_entries = static_cast<std::uint32_t>(*entries);
    attach_kernel_threads(root, machine);
    return machine;
}

} // namespace affinityd::app
