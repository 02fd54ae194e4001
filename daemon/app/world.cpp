// SPDX-License-Identifier: Apache-2.0
#include "app/world.hpp"

#include <algorithm>
#include <cstdlib>

namespace affinityd::app {

World::World(policy::PolicySet policies, machine::Machine machine, planner::NicUsage usage)
    : policies_(std::move(policies)), machine_(std::move(machine)), usage_(std::move(usage)),
      matcher_(policies_), placements_(planner::compile(policies_, machine_, usage_)),
      assumed_(placements_.load) {}

void World::update(machine::Machine machine) {
    machine::use_latencies(machine, std::move(machine_.latencies));
    machine.cannot_steer = machine_.cannot_steer;
    machine_ = std::move(machine);
    work_out();
}

void World::update(planner::NicUsage usage) {
    usage_ = std::move(usage);
    work_out();
}

void World::update(machine::KnownLatencies latencies) {
    machine::use_latencies(machine_, std::move(latencies));
    work_out();
}

void World::use_steering(bool can_steer) {
    if (machine_.cannot_steer == !can_steer) return;
    machine_.cannot_steer = !can_steer;
    work_out();
}

void World::work_out() {
    auto placements = planner::recompile(policies_, machine_, usage_, placements_, released_);
    if (!std::ranges::equal(placements.queues, placements_.queues, &planner::QueueTarget::is_same))
        ++version_;
    placements_ = std::move(placements);
    assumed_ = placements_.load;
    use_weights();
}

void World::weigh_interrupts(const std::map<unsigned, planner::Weight>& weights) {
    constexpr planner::Weight little = planner::one_cpu / 32;
    bool has_changed = false;
    for (const auto& [cpu, weight] : weights) {
        if (assumed_->on_cpu(cpu) == 0) continue;
        auto& known = weights_.try_emplace(cpu, weight).first->second;
        known = (known + weight) / 2;
        has_changed = has_changed || std::abs(known - placements_.load->on_cpu(cpu)) >= little;
    }
    if (has_changed) use_weights();
}

void World::use_weights() {
    std::erase_if(weights_, [&](const auto& entry) { return assumed_->on_cpu(entry.first) == 0; });
    if (weights_.empty()) return;
    planner::CpuLoad load(machine_.topology);
    for (const auto& cpu : machine_.topology.cpus) {
        const auto measured = weights_.find(cpu.id);
        const auto weight = measured == weights_.end() ? assumed_->on_cpu(cpu.id) : measured->second;
        if (weight > 0) load.add({cpu.id}, weight);
    }
    placements_.load = std::make_shared<const planner::CpuLoad>(std::move(load));
}

void World::use_releases(std::function<bool(std::string_view)> is_released) {
    is_released_ = std::move(is_released);
    releases_changed();
}

void World::releases_changed() {
    planner::Released released;
    for (const auto& policy : policies_.policies)
        if (policy.exclusive != policy::Exclusive::no && is_released_ && is_released_(policy.name))
            released.insert(policy.name);
    if (released == released_) return;
    released_ = std::move(released);
    work_out();
}

bool World::needs_nic_usage() const {
    return std::ranges::any_of(policies_.policies, [](const policy::Policy& policy) {
        return policy.model == policy::Model::full || policy.model == policy::Model::irq;
    });
}

bool World::keeps_on_stop(std::string_view name) const {
    const auto found = std::ranges::find(policies_.policies, name, &policy::Policy::name);
    if (found == policies_.policies.end()) return kept_.contains(name);
    return found->on_stop == policy::OnStop::keep;
}

bool World::keeps_after_removal(std::string_view policy) const {
    return kept_.contains(policy) && placements_.find(policy) == nullptr;
}

void World::take_over(const World& before) {
    machine::use_latencies(machine_, before.machine_.latencies);
    machine_.cannot_steer = before.machine_.cannot_steer;
    placements_ = planner::recompile(policies_, machine_, usage_, before.placements_, released_);
    assumed_ = placements_.load;
    weights_ = before.weights_;
    use_weights();
    seen_ = before.seen_;
    kept_ = before.kept_;
    for (const auto& policy : before.policies_.policies)
        if (policy.on_stop == policy::OnStop::keep) kept_.insert(policy.name);
    for (const auto& policy : policies_.policies)
        kept_.erase(policy.name);
}

} // namespace affinityd::app
