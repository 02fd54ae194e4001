// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/measurements.hpp"
#include "base/task_id.hpp"
#include "core/behaviour.hpp"
#include "core/log.hpp"
#include "core/work.hpp"
#include "enforcer/executor.hpp"
#include "host/root.hpp"
#include "policy/settings.hpp"
#include "world/world.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace affinityd::core {

using policy::Settings;

/// Policies and processes that were told to let go until the next `apply`, or reload that was asked for. A
/// process is known by its identity: a later one of the same number is not released.
class Releases {
  public:
    void release_policy(std::string name) { policies_.insert(std::move(name)); }
    void release_process(const TaskId& id) { processes_.insert(id); }
    void clear() { *this = {}; }
    /// These policies stay released if they are; no other does.
    void keep_policies(const Names& names) {
        Names kept;
        for (const auto& name : names)
            if (policy(name)) kept.insert(name);
        policies_ = std::move(kept);
    }
    void clear_processes() { processes_.clear(); }
    /// The process has ended.
    void drop(const TaskId& id) { processes_.erase(id); }

    /// The daemon ends: whatever the policies say, nothing is wanted any more.
    void release_all() { all_ = true; }
    [[nodiscard]] bool all() const { return all_; }
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

/// All parts of the daemon work on this.
struct Shared {
    const host::Root& root;
    enforcer::Enforcer& enforcer;
    Log& log;
    Settings settings;
    enforcer::Executor executor;
    accounting::Measurements history;
    Current current{};
    Releases releases{};
    Work work{};
    Behaviours behaviours{};
    [[nodiscard]] bool acts() const { return enforcer.acts(); } ///< false: a dry run
    [[nodiscard]] state::Journal& journal() { return executor.journal(); }
    [[nodiscard]] const state::Journal& journal() const { return executor.journal(); }
    /// True if a policy was removed, and its masks stay, and were not released by hand.
    [[nodiscard]] bool keeps(std::string_view policy) const {
        return current->keeps_after_removal(policy) && !releases.policy(policy);
    }
    /// True: some behaviour wants the task to stay where it is.
    [[nodiscard]] bool is_held(const TaskId& task) const {
        return std::ranges::any_of(behaviours, [&](const auto& one) { return one->holds(task); });
    }
    [[nodiscard]] Counters counters(const std::string& policy) {
        Counters counters;
        for (const auto& behaviour : behaviours)
            behaviour->count(policy, counters);
        return counters;
    }
    void keep(state::MeasurementRecord record) {
        history.keep(std::move(record));
        log_notices(log, history.take_notices());
    }
    void want_pass() { work.want(Work::Urgency::soon); }
    /// Logs that the undo journal could not be written. True: it was.
    bool report(const auto& written) {
        if (!written) log.error(written.error().to_string());
        return written.has_value();
    }
};

} // namespace affinityd::core
