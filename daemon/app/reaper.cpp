// SPDX-License-Identifier: Apache-2.0
#include "app/reaper.hpp"

namespace affinityd::app {

namespace {

constexpr std::size_t looked_at_a_pass = 64; // each costs a read

} // namespace

void Reaper::bury(const TaskId& thread, int pid, planner::Assignments& assignments) {
    assignments.leave(thread);
    if (const auto done = executor_.gone(machine::TaskMask{thread, pid, {}}); !done)
        log_.error(done.error().to_string());
}

void Reaper::bury_if_gone(int pid, const TaskId& thread, KnownProcess* known,
                          planner::Assignments& assignments) {
    const machine::TaskMask subject{thread, pid, {}};
    const auto present = enforcer_.present(subject);
    if (!present || *present || enforcer_.may_return(subject)) return; // an Error: nothing is known
    bury(thread, pid, assignments);
    if (known == nullptr) return;
    const auto* found = known->threads.find(thread.tid);
    if (found != nullptr && found->id == thread) known->threads.erase(thread.tid);
}

bool Reaper::sweep(const TaskTable& table, planner::Assignments& assignments,
                   const std::function<bool()>& out_of_time) {
    while (cursor_) {
        if (!doubtful_.empty()) {
            bury_if_gone(pid_, doubtful_.back(), nullptr, assignments);
            doubtful_.pop_back();
        } else if (pid_ = executor_.journal().next_process(*cursor_); pid_ != 0) {
            cursor_ = pid_;
            if (table.find(pid_) == nullptr) doubtful_ = executor_.journal().threads(pid_);
        } else {
            cursor_.reset();
            executor_.drop_gone(looked_at_a_pass);
            break;
        }
        if (out_of_time()) return false;
    }
    return true;
}

} // namespace affinityd::app
