// SPDX-License-Identifier: Apache-2.0
#include "app/world.hpp"

#include <algorithm>

namespace affinityd::app {

World::World(policy::PolicySet policies, machine::Machine machine, planner::NicUsage usage)
    : policies_(std::move(policies)), machine_(std::move(machine)), usage_(std::move(usage)),
      matcher_(policies_), placements_(planner::compile(policies_, machine_, usage_)) {}

void World::update(machine::Machine machine) {
    machine_ = std::move(machine);
    placements_ = planner::compile(policies_, machine_, usage_);
}

void World::update(planner::NicUsage usage) {
    usage_ = std::move(usage);
    placements_ = planner::compile(policies_, machine_, usage_);
}

bool World::needs_nic_usage() const {
    return std::ranges::any_of(policies_.policies, [](const policy::Policy& policy) {
        return policy.model == policy::Model::full || policy.model == policy::Model::irq;
    });
}

bool World::keeps_on_stop(std::string_view name) const {
    const auto found = std::ranges::find(policies_.policies, name, &policy::Policy::name);
    return found != policies_.policies.end() && found->on_stop == policy::OnStop::keep;
}

} // namespace affinityd::app
