// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"
#include "netdev/lower.hpp"
#include "planner/placements.hpp"
#include "policy/policy.hpp"

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::planner {

/// The interfaces of a machine as policies see them: which ones a policy is about, and which of these belong
/// together. Worked out once for all policies; the machine must outlive it.
class Interfaces {
  public:
    explicit Interfaces(const machine::Machine& machine);

    /// Names of the interfaces that a policy names or, for `auto`, that serve it; those of virtual ones are
    /// the physical ones under them. In the machine's order, without repetition.
    [[nodiscard]] NicNames of(const policy::Policy& policy, const NicUsage& usage) const;
    /// Virtual interfaces that a policy names in full, under which there is nothing physical.
    [[nodiscard]] NicNames hollow(const policy::Policy& policy) const;

    /// Interfaces whose traffic may be the same task's.
    struct Group {
        std::vector<const netdev::Nic*> nics; ///< in the machine's order, at least one
        unsigned tasks = 0;                   ///< that they serve; 0: not known
    };
    /// `names` by what belongs together: the ports of one virtual interface, and those that serve one task.
    /// In the machine's order of the first ones.
    [[nodiscard]] std::vector<Group> together(const NicNames& names, const policy::Policy& policy,
                                              const NicUsage& usage) const;
    /// Each for itself.
    [[nodiscard]] std::vector<Group> apart(const NicNames& names) const;
    /// A bond keeps it for when another fails.
    [[nodiscard]] bool is_spare(const netdev::Nic& nic) const { return spares_.contains(nic.name); }

    [[nodiscard]] const machine::Machine& machine() const { return machine_; }

  private:
    [[nodiscard]] NicNames physical(const NicNames& names) const;
    const machine::Machine& machine_;
    netdev::Stacks stacks_;
    std::set<std::string_view> spares_;
    std::set<NicNames> ports_; ///< of virtual interfaces that have several physical ones under them
};

/// Interfaces that are about to get lanes, all the same ones.
struct LaneGroup {
    Interfaces::Group interfaces;
    const NicLanes* before = nullptr; ///< what they had until now; nullptr: nothing that they might keep
    [[nodiscard]] std::span<const Slot> kept() const {
        return before == nullptr ? std::span<const Slot>() : before->lanes;
    }
    [[nodiscard]] std::span<const unsigned> kept_interrupts() const {
        return before == nullptr ? std::span<const unsigned>() : before->interrupts;
    }
    /// CPUs with the work of one: of each lane, and of its interrupts, if these are elsewhere.
    [[nodiscard]] std::vector<unsigned> kept_work() const;
};

/// The groups of a policy's interfaces. Under `full` those that serve the same tasks are in one, under `irq`
/// each is for itself.
///
/// `before`: the same policy as it was placed last, nullptr: never. A group keeps the lanes of the one with
/// which it shares most devices, by whatever name they go now; each is kept once. Lanes that were a guess,
/// because it was not known how many tasks would be served, are not kept once that is known.
[[nodiscard]] std::vector<LaneGroup> lane_groups(const policy::Policy& policy, const Interfaces& interfaces,
                                                 const NicNames& nics, const NicUsage& usage,
                                                 const ResolvedPolicy* before);

} // namespace affinityd::planner
