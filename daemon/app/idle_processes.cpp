// SPDX-License-Identifier: Apache-2.0
#include "app/idle_processes.hpp"

#include <utility>

namespace affinityd::app {

bool IdleProcesses::see(const TaskId& process, bool takes, Clock::time_point now, Inodes held, bool are_all) {
    if (takes) {
        const bool before = takes_none(process);
        seen_.erase(process);
        return before;
    }
    auto& idle = seen_[process];
    if (++idle.reads >= enough_reads) idle.again = now + pause;
    idle.held = std::move(held);
    idle.are_all = are_all;
    return false;
}

void IdleProcesses::for_each(const std::function<void(const TaskId&, const Inodes&)>& take) const {
    for (const auto& [process, idle] : seen_)
        take(process, idle.held);
}

bool IdleProcesses::note_workers(const std::function<bool(const TaskId&)>& others_do) {
    bool are_more = false;
    for (auto& [process, idle] : seen_) {
        if (idle.has_workers || !others_do(process)) continue;
        idle.has_workers = are_more = true;
    }
    return are_more;
}

bool IdleProcesses::rests(const TaskId& process, Clock::time_point now,
                          const UnattendedListeners& unattended) const {
    const auto found = seen_.find(process);
    return found != seen_.end() && now < found->second.again && !unattended.has_any_of(found->second.held);
}

bool IdleProcesses::has_no_listener(const TaskId& process) const {
    const auto found = seen_.find(process);
    return found != seen_.end() && found->second.reads >= enough_reads && found->second.are_all &&
           found->second.held.empty();
}

bool IdleProcesses::takes_none(const TaskId& process) const {
    const auto found = seen_.find(process);
    return found != seen_.end() && found->second.has_workers;
}

void IdleProcesses::keep_only(const std::function<bool(const TaskId&)>& is_there) {
    std::erase_if(seen_, [&](const auto& one) { return !is_there(one.first); });
}

} // namespace affinityd::app
