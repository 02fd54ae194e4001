// SPDX-License-Identifier: Apache-2.0
#include "app/reaper.hpp"

namespace affinityd::app {

namespace {

constexpr std::size_t refusals_a_pass = 64; // each costs a read

} // namespace

void Reaper::bury(const TaskId& thread, int pid, planner::Assignments& assignments) {
    assignments.leave(thread);
    if (const auto done = executor_.gone(machine::TaskMask{thread, pid, {}}); !done)
        log_.error(done.error().to_string());
}

void Reaper::bury_gone(int pid, std::span<const TaskId> threads, KnownProcess* known,
                       planner::Assignments& assignments) {
    for (const auto& id : threads) {
        const auto present = enforcer_.present(machine::TaskMask{id, pid, {}});
        if (!present || *present) continue; // an Error: nothing is known
        bury(id, pid, assignments);
        if (known == nullptr) continue;
        const auto* thread = known->threads.find(id.tid);
        if (thread != nullptr && thread->id == id) known->threads.erase(id.tid);
    }
}

bool Reaper::sweep(const TaskTable& table, planner::Assignments& assignments,
                   const std::function<bool()>& out_of_time) {
    while (cursor_) {
        const auto pid = journal_.next_process(*cursor_);
        if (!pid) {
            cursor_.reset();
            executor_.drop_gone_refusals(refusals_a_pass);
            break;
        }
        if (table.find(*pid) == nullptr) bury_gone(*pid, journal_.threads(*pid), nullptr, assignments);
        if (out_of_time()) return false;
    }
    return true;
}

} // namespace affinityd::app
