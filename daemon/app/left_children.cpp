// SPDX-License-Identifier: Apache-2.0
#include "app/left_children.hpp"

#include "host/boot_clock.hpp"
#include "host/root.hpp"
#include "inventory/cgroup.hpp"
#include "inventory/lookup.hpp"
#include "inventory/name_space.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace affinityd::app {

bool LeftChildren::may_be_given(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const {
    return is_looking_ && born >= born_from_ && journal_.contents().given().contains(mask, online, born);
}

namespace {

std::string group_of(const host::Root& root, int pid) {
    const auto groups = root.proc().text(std::to_string(pid) + "/cgroup");
    return groups ? inventory::cgroup_of(*groups) : "";
}

} // namespace

/// In this order: a process that has this number afterwards had it before.
state::Descent LeftChildren::descent_of(const TaskId& process) const {
    auto group = group_of(root_, process.tid);
    const auto scan = inventory::ProcessScan::open(root_, process.tid);
    if (!scan || !*scan || (*scan)->id() != process) return {};
    return {std::move(group), std::max((*scan)->session(), 0)};
}

void LeftChildren::note(const TaskId& process, const planner::UndoRecord& record, std::uint64_t since) {
    if (!enforcer_.acts()) return;
    if (noted_.process != process) noted_ = {process, descent_of(process)};
    note_noted(record, since);
}

/// It is on the way of each event that places a new process, so its stat is not read once more: whose number
/// that is by now, the enforcer makes sure of before it sets a mask. If it is another's, no mask is set; the
/// note that is left matters only where this daemon is killed and somebody has set that very mask in the
/// other's control group himself.
void LeftChildren::note_coming(const KnownProcess& process, const planner::UndoRecord& record,
                               std::uint64_t since) {
    if (!enforcer_.acts()) return;
    if (noted_.process != process.id)
        noted_ = {process.id, {group_of(root_, process.id.tid), process.look.session}};
    note_noted(record, since);
}

void LeftChildren::note_noted(const planner::UndoRecord& record, std::uint64_t since) {
    const auto note = [&](const machine::Setting& mask) {
        if (mask == record.original) return;
        const auto done =
            journal_.note_given({mask.cpus(), record.original.cpus(), record.policy, noted_.descent, since});
        if (!done) log_.error(done.error().to_string(), "given mask not noted");
    };
    note(record.asked);
    if (record.granted != record.asked) note(record.granted);
}

bool LeftChildren::has_given_mask(const inventory::ProcessScan& scan, const CpuSet& online) const {
    if (scan.id().start_time < born_from_) return false;
    const auto thread = inventory::read_thread(root_, scan.id().tid, scan.id().tid);
    return thread && *thread && may_be_given((*thread)->allowed, online, scan.id().start_time);
}

/// It was given to the init of its PID namespace, or to a manager of services or containers, which has a
/// control group of its own. What a shell starts has its parent still.
bool LeftChildren::has_lost_its_parent(const inventory::ProcessScan& scan) const {
    if (scan.parent() <= 1 || inventory::is_namespace_init(root_, scan.parent())) return true;
    const auto parent = inventory::ProcessScan::open(root_, scan.parent());
    return parent && *parent && (*parent)->facts().cgroup() != scan.facts().cgroup();
}

/// It has lost its parent, or has its mask from one that has: children may be looked at before their parents.
bool LeftChildren::is_of_an_orphan(const inventory::ProcessScan& scan, const CpuSet& online) const {
    constexpr int most_ancestors = 64; // which also ends a loop in a recording
    if (has_lost_its_parent(scan)) return true;
    auto parent = scan.parent();
    for (int i = 0; i < most_ancestors; ++i) {
        const auto ancestor = inventory::ProcessScan::open(root_, parent);
        if (!ancestor || !*ancestor || !may_be_one(**ancestor, online)) return false;
        if (has_lost_its_parent(**ancestor)) return true;
        parent = (*ancestor)->parent();
    }
    return false;
}

/// Its parent lives, and has or had masks from us: maybe another one by now, and of those before no record is
/// left after a crash.
bool LeftChildren::is_of_a_policys_process(const inventory::ProcessScan& scan) const {
    const auto& contents = journal_.contents();
    for (const auto* records : {&contents.held(), &contents.past().kept(), &contents.past().put_back()})
        if (records->threads().has_process(scan.parent())) return true;
    return false;
}

std::optional<state::MaskSource> LeftChildren::explain(const machine::TaskMask& task, const CpuSet& present,
                                                       const CpuSet& online) const {
    if (!may_be_given(present, online, task.task.start_time) || journal_.contents().past().contains(task))
        return std::nullopt;
    const auto scan = inventory::ProcessScan::open(root_, task.pid);
    if (!scan || !*scan) return std::nullopt;
    if (!is_of_a_policys_process(**scan) && !is_of_an_orphan(**scan, online)) return std::nullopt;
    return journal_.contents().given().find(present, online, task.task.start_time, descent_of((*scan)->id()));
}

void LeftChildren::add(Tasks& tasks, const machine::TaskMask& task) {
    constexpr std::size_t most_named = 3;
    if (++tasks.count > most_named + 1) return;
    const auto* separator = tasks.count == 1 ? "" : ", ";
    tasks.first += tasks.count > most_named ? " and others" : separator + machine::to_string(task);
}

void LeftChildren::leave(const machine::TaskMask& task, const CpuSet& present, const CpuSet& online) {
    if (present.contains(online)) return; // nearly every task of the machine has that
    if (may_be_given(present, online, task.task.start_time) && !journal_.contents().past().contains(task))
        add(left_, task);
}

void LeftChildren::end_pass() {
    if (taken_in_.count > 0)
        log_.info(fmt::format("{} tasks have masks of ours from parents that ended while no daemon ran, and "
                              "get back what these had: {}",
                              taken_in_.count, taken_in_.first));
    if (left_.count > 0)
        log_.warn(fmt::format(
            "{} tasks have masks that policies gave out since boot, and nothing shows that they have "
            "them from there, so they are left alone: {}",
            left_.count, left_.first));
    taken_in_ = left_ = {};
    is_looking_ = false;
    if (const auto done = journal_.end_given(now()); !done) log_.error(done.error().to_string());
}

void LeftChildren::begin_stop() {
    constexpr std::uint64_t seconds = 5; // events of an earlier time have been handled
    const auto before = seconds * host::ticks_a_second();
    is_looking_ = journal_.contents().given().size() > 0;
    born_from_ = now() > before ? now() - before : 0;
}

} // namespace affinityd::app
