// SPDX-License-Identifier: Apache-2.0
#include "world/world.hpp"

#include "policy/set_check.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::core {

World::World(policy::PolicySet policies, machine::Machine machine, planner::NicUsage usage)
    : policies_(std::move(policies)), machine_(std::move(machine)), usage_(std::move(usage)),
      matcher_(policies_) {
    for (const auto& policy : policies_.policies)
        steers_.push_back(policy.steer);
    machine_.follows_pods = policy::has_word(policies_, policy::CpuExpr::Op::pods);
    choose({});
    placements_ = planner::compile(policies_, machine_, usage_);
    assumed_ = placements_.load;
}

void World::update(machine::Machine machine) {
    machine::use_latencies(machine, std::move(machine_.latencies));
    machine.unsteered = std::move(machine_.unsteered);
    machine.follows_pods = machine_.follows_pods;
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

void World::use_steering(machine::Machine::Unsteered unsteered) {
    if (machine_.unsteered == unsteered) return;
    machine_.unsteered = std::move(unsteered);
    work_out();
}

void World::use_choices(const Choices& choices) {
    if (choose(choices)) work_out();
}

/// True: a policy does something else now.
bool World::choose(const Choices& choices) {
    bool has_changed = false;
    for (auto& policy : policies_.policies) {
        if (!policy.model_auto) continue;
        const auto found = choices.find(policy.name);
        const auto choice = found == choices.end() ? planner::AutoCandidate{} : found->second;
        const auto steer = choice.steer == policy::Steer::none ? policy::Steer::none : steer_of(policy);
        has_changed |= policy.model != choice.model || policy.steer != steer;
        policy.model = choice.model;
        policy.steer = steer;
    }
    return has_changed;
}

void World::work_out() {
    auto placements = planner::compile(policies_, machine_, usage_, &placements_, released_);
    if (!std::ranges::equal(placements.queues, placements_.queues, &planner::QueueTarget::is_same))
        ++version_;
    placements_ = std::move(placements);
    assumed_ = placements_.load;
    use_weights();
}

void World::weigh_interrupts(std::map<unsigned, planner::Weight> weights) {
    weights_ = std::move(weights);
    use_weights();
}

void World::use_weights() {
    planner::CpuLoad load(machine_.topology);
    for (const auto& cpu : machine_.topology.cpus) {
        const auto measured = weights_.find(cpu.id);
        const auto assumed = assumed_->on_cpu(cpu.id);
        if (assumed > 0) load.add({cpu.id}, measured == weights_.end() ? assumed : measured->second);
    }
    placements_.load = std::make_shared<const planner::CpuLoad>(std::move(load));
}

void World::update(planner::Released released) {
    if (released == released_) return;
    released_ = std::move(released);
    work_out();
}

bool World::needs_nic_usage() const {
    return std::ranges::any_of(policies_.policies, [](const policy::Policy& policy) {
        return policy.model == policy::Model::full || policy.model == policy::Model::irq || policy.model_auto;
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

void World::take_over(const World& before, const Choices& choices, planner::Released released) {
    choose(choices);
    released_ = std::move(released);
    machine_.unsteered = before.machine_.unsteered;
    placements_ = planner::compile(policies_, machine_, usage_, &before.placements_, released_);
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

} // namespace affinityd::core
