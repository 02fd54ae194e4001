// SPDX-License-Identifier: Apache-2.0
#include "app/task_table.hpp"

namespace affinityd::app {

KnownProcess* TaskTable::find(int pid) {
    const auto found = processes_.find(pid);
    return found == processes_.end() ? nullptr : &found->second;
}

const KnownProcess* TaskTable::find(int pid) const { return const_cast<TaskTable*>(this)->find(pid); }

const KnownThread* TaskTable::find(int pid, const TaskId& thread) const {
    const auto* process = find(pid);
    if (process == nullptr) return nullptr;
    const auto found = process->threads.find(thread.tid);
    return found == process->threads.end() || found->second.id != thread ? nullptr : &found->second;
}

KnownProcess& TaskTable::insert(const TaskId& id) {
    auto& process = processes_[id.tid];
    if (process.id != id)
        process = KnownProcess{.id = id,
                               .comm = {},
                               .policy = 0,
                               .nics = {},
                               .threads = {},
                               .seen = 0,
                               .cpuset = {},
                               .unit = {},
                               .unit_folder = {},
                               .memory_nodes = {},
                               .memory_state = {}};
    return process;
}

} // namespace affinityd::app
