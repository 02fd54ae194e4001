// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/task_table.hpp"
#include "planner/matcher.hpp"
#include "policy/policy.hpp"

namespace affinityd::host {
class Root;
}

namespace affinityd::app {

/// Answers `parent:` by walking up the process tree; asked only where a policy says `parent:`.
class ProcessLineage final : public planner::Lineage {
  public:
    ProcessLineage(const host::Root& root, const TaskTable& tasks, const policy::PolicySet& policies)
        : root_(root), tasks_(tasks), policies_(policies) {}
    [[nodiscard]] std::vector<std::string>
    ancestor_policies(const inventory::ProcessFacts& process) const override;

  private:
    const host::Root& root_;
    const TaskTable& tasks_;
    const policy::PolicySet& policies_;
};

} // namespace affinityd::app
