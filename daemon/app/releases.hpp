// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"

#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace affinityd::app {

/// What was told to let go until the next `apply`, or reload that somebody asks for. Policies, processes and
/// "everything" are kept apart, and a process by its identity: a later one of the same number is not
/// released.
class Releases {
  public:
    void release_all() { all_ = true; }
    void release_policy(std::string name) { policies_.insert(std::move(name)); }
    void release_process(const TaskId& id) { processes_.insert(id); }
    void clear() { *this = {}; }
    using Names = std::set<std::string, std::less<>>;
    /// Of these policies, what was let go stays so.
    void keep_policies(const Names& names) {
        Names kept;
        for (const auto& name : names)
            if (policy(name)) kept.insert(name);
        policies_ = std::move(kept);
        all_ = false;
    }
    void clear_processes() { processes_.clear(); }
    /// The process has ended.
    void forget(const TaskId& id) { processes_.erase(id); }

    [[nodiscard]] bool policy(std::string_view name) const { return all_ || policies_.contains(name); }
    [[nodiscard]] bool process(const TaskId& id) const { return processes_.contains(id); }
    [[nodiscard]] const std::unordered_set<TaskId>& processes() const { return processes_; }
    /// True if this process, which that policy wants, is to be let go.
    [[nodiscard]] bool covers(std::string_view policy_name, const TaskId& id) const {
        return !empty() && (policy(policy_name) || process(id));
    }
    [[nodiscard]] bool empty() const { return !all_ && policies_.empty() && processes_.empty(); }

  private:
    bool all_ = false;
    Names policies_;
    std::unordered_set<TaskId> processes_;
};

} // namespace affinityd::app
