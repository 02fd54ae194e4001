// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"
#include "planner/affinity_choice.hpp"
#include "planner/matcher.hpp"
#include "planner/placements.hpp"
#include "policy/policy.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::core {

using Names = std::set<std::string, std::less<>>; ///< of policies

/// Everything that a reload replaces as one: a policy set with its matcher, the machine it is worked out on,
/// and the placements. The parts point at each other, so a world is neither copied nor moved.
class World {
  public:
    World(policy::PolicySet policies, machine::Machine machine, planner::NicUsage usage = {});
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    [[nodiscard]] const policy::PolicySet& policies() const { return policies_; }
    [[nodiscard]] const policy::Policy& policy(std::size_t index) const { return policies_.policies[index]; }
    [[nodiscard]] const machine::Machine& machine() const { return machine_; }
    [[nodiscard]] const planner::Matcher& matcher() const { return matcher_; }
    [[nodiscard]] const planner::Placements& placements() const { return placements_; }
    [[nodiscard]] const planner::NicUsage& usage() const { return usage_; }

    /// The machine was read again, or other processes use other interfaces: works the placements out anew.
    void update(machine::Machine machine);
    void update(planner::NicUsage usage);
    /// Latencies were measured; they stay when the machine is read again.
    void update(machine::KnownLatencies latencies);
    /// Something can be steered no more, or again; that stays, too.
    void use_steering(machine::Machine::Unsteered unsteered);
    /// The choices of policies with `affinity: auto`, by name; without one nothing is placed.
    using Choices = std::map<std::string, planner::AutoCandidate, std::less<>>;
    void use_choices(const Choices& choices);
    /// As its file says, whatever the choice.
    [[nodiscard]] policy::Steer steer_of(const policy::Policy& policy) const {
        return steers_[static_cast<std::size_t>(&policy - policies_.policies.data())];
    }
    /// Uses the time that interrupts have really taken, by CPU; without a count, the assumed weight.
    void weigh_interrupts(std::map<unsigned, planner::Weight> weights);
    /// True if policies place interrupts.
    [[nodiscard]] bool has_interrupts() const { return assumed_->busiest() > 0; }
    /// Policies that were released, or have no program that runs, claim no CPUs: the others place their tasks
    /// there, too.
    void update(planner::Released released);
    /// True if the policy would claim its CPUs, and does not now.
    [[nodiscard]] bool awaits_claim(std::size_t policy) const {
        return released_.contains(this->policy(policy).name);
    }
    /// A process of the policy was seen: then none may be there now, but its match is no mistake.
    void saw(std::size_t policy) { seen_.insert(this->policy(policy).name); }
    [[nodiscard]] bool has_seen(std::string_view policy) const { return seen_.contains(policy); }
    /// Grows with each update that gives queues other targets: a round through these in slices begins
    /// again. An interface that no policy names may come and go without that.
    [[nodiscard]] std::uint64_t version() const { return version_; }
    /// True if some policy needs to know which interface serves which process.
    [[nodiscard]] bool needs_nic_usage() const;
    /// True if masks given for this policy stay when the daemon stops or the policy is removed.
    [[nodiscard]] bool keeps_on_stop(std::string_view policy) const;
    /// True if the policy was removed, and its masks stay.
    [[nodiscard]] bool keeps_after_removal(std::string_view policy) const;
    /// Takes the place of `before`, with choices and claims of now: the masks of policies that are missing
    /// here stay if they said so.
    void take_over(const World& before, const Choices& choices, planner::Released released);

  private:
    bool choose(const Choices& choices);
    void work_out();
    void use_weights();
    policy::PolicySet policies_;
    std::vector<policy::Steer> steers_; ///< of the policies, as their files say
    machine::Machine machine_;
    planner::NicUsage usage_;
    planner::Matcher matcher_;
    planner::Placements placements_;
    std::shared_ptr<const planner::CpuLoad> assumed_; ///< load of interrupts, one CPU each
    std::map<unsigned, planner::Weight> weights_;     ///< of interrupts, by CPU, as measured
    std::uint64_t version_ = 0;
    Names seen_;                 ///< policies with a process, now or before
    Names kept_;                 ///< removed policies with on_stop: keep
    planner::Released released_; ///< those that claim CPUs otherwise
};

/// The world in force. A reload puts another one in its place; a user of the old one for longer than a call
/// keeps a share of it.
struct Current {
    std::shared_ptr<World> world; ///< never null once the daemon has started
    [[nodiscard]] World* operator->() const { return world.get(); }
    [[nodiscard]] const planner::Placements& placements() const { return world->placements(); }
};

} // namespace affinityd::core
