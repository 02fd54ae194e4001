// SPDX-License-Identifier: Apache-2.0
#include "core/task_table.hpp"

#include "inventory/process_files.hpp"

#include <algorithm>

namespace affinityd::core {

namespace {

constexpr auto tid_of = [](const KnownThread& thread) { return thread.id.tid; };

} // namespace

KnownThread* KnownThreads::find(int tid) {
    const auto at = std::ranges::lower_bound(threads_, tid, {}, tid_of);
    return at == threads_.end() || at->id.tid != tid ? nullptr : &*at;
}

const KnownThread* KnownThreads::find(int tid) const { return const_cast<KnownThreads*>(this)->find(tid); }

KnownThread& KnownThreads::insert(const TaskId& id) {
    auto at = std::ranges::lower_bound(threads_, id.tid, {}, tid_of);
    if (at == threads_.end() || at->id.tid != id.tid) at = threads_.insert(at, KnownThread{.id = id});
    if (at->id != id) *at = KnownThread{.id = id};
    return *at;
}

KnownThread* KnownThreads::next(int tid) {
    const auto at = std::ranges::lower_bound(threads_, tid, {}, tid_of);
    return at == threads_.end() ? nullptr : &*at;
}

void KnownThreads::erase(const TaskId& id) {
    const auto at = std::ranges::lower_bound(threads_, id.tid, {}, tid_of);
    if (at != threads_.end() && at->id == id) threads_.erase(at);
}

std::size_t KnownThreads::count_below(int tid) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(threads_, tid, {}, tid_of) - threads_.begin());
}

planner::ProcessView view_of(const TaskId& id, std::optional<std::size_t> policy, const KnownProcess* known) {
    planner::ProcessView view{id, policy};
    if (known == nullptr) return view;
    view.nics = &known->nics;
    view.is_settling = known->settling.has_value();
    view.parent = known->parent;
    view.is_elsewhere = known->is_elsewhere;
    view.reads_nothing = known->reads_nothing;
    return view;
}

KnownProcess* TaskTable::find(int pid) {
    const auto found = processes_.find(pid);
    return found == processes_.end() ? nullptr : &found->second;
}

const KnownProcess* TaskTable::find(int pid) const { return const_cast<TaskTable*>(this)->find(pid); }

const KnownThread* TaskTable::find(int pid, const TaskId& thread) const {
    const auto* process = find(pid);
    const auto* known = process == nullptr ? nullptr : process->threads.find(thread.tid);
    return known != nullptr && known->id == thread ? known : nullptr;
}

std::optional<std::size_t> TaskTable::policy_of(int pid) const {
    const auto* known = find(pid);
    return known == nullptr ? std::nullopt : std::optional(known->policy);
}

KnownProcess& TaskTable::insert(const TaskId& id) {
    auto& process = processes_[id.tid];
    if (process.id != id) process = KnownProcess{.id = id};
    return process;
}

std::size_t TaskTable::threads() const {
    std::size_t sum = 0;
    for (const auto& [pid, process] : processes_)
        sum += process.threads.size();
    return sum;
}

std::vector<std::string> ProcessLineage::ancestor_policies(const inventory::ProcessFacts& process) const {
    std::vector<std::string> names;
    for (const int pid : inventory::read_ancestors(root_, process.parent()))
        if (const auto* known = tasks_.find(pid);
            known != nullptr && known->policy < policies_.policies.size())
            names.push_back(policies_.policies[known->policy].name);
    return names;
}

} // namespace affinityd::core
