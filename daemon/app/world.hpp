// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "planner/machine.hpp"
#include "planner/matcher.hpp"
#include "planner/placements.hpp"
#include "policy/reader.hpp"

#include <memory>
#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::app {

/// Everything that a reload replaces as one: a policy set with its matcher, the machine it is worked out on,
/// and the placements. Built beside the running one and swapped in only if whole. Its parts point at each
/// other: it stays where it is.
class World {
  public:
    World(policy::PolicySet policies, planner::Machine machine);
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    [[nodiscard]] const policy::PolicySet& policies() const { return policies_; }
    [[nodiscard]] const planner::Machine& machine() const { return machine_; }
    [[nodiscard]] const planner::Matcher& matcher() const { return matcher_; }
    [[nodiscard]] const planner::Placements& placements() const { return placements_; }
    [[nodiscard]] const planner::Serving& serving() const { return serving_; }

    /// The machine was read again, or other processes use other interfaces: works the placements out anew.
    void update(planner::Machine machine);
    void update(planner::Serving serving);
    /// True if some policy needs to know which interface serves which process.
    [[nodiscard]] bool asks_for_serving() const;

  private:
    policy::PolicySet policies_;
    planner::Machine machine_;
    planner::Serving serving_;
    planner::Matcher matcher_;
    planner::Placements placements_;
};

/// Topology, interfaces and interrupts of the root.
[[nodiscard]] Result<planner::Machine> read_machine(const host::Root& root);

} // namespace affinityd::app
