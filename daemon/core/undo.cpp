// SPDX-License-Identifier: Apache-2.0
#include "core/undo.hpp"

#include "host/root.hpp"
#include "host/self.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace affinityd::core {

using machine::Setting;
using machine::Subject;
using machine::TaskMask;
using planner::UndoPointer;
using planner::UndoRecord;

namespace {

Setting default_of(const host::Root& root, const Subject& subject, const topology::Topology& topology) {
    if (std::holds_alternative<TaskMask>(subject) || std::holds_alternative<machine::KernelMask>(subject))
        return topology.possible;
    if (std::holds_alternative<machine::FlowTable>(subject)) return machine::FlowCount{};
    if (!std::holds_alternative<machine::IrqMask>(subject))
        return CpuSet{}; // steering maps: off, units: not set
    return root.proc().cpu_mask("irq/default_smp_affinity").value_or(topology.online);
}

/// For an interrupt that was requested while new ones are kept off isolated CPUs: the record that has the
/// default from before. Else null.
UndoPointer kept_off_from_birth(const state::Journal& journal, const Subject& subject,
                                const Setting& present) {
    if (!std::holds_alternative<machine::IrqMask>(subject) || journal.contains(subject)) return nullptr;
    auto record = journal.find(machine::KernelMask{machine::KernelMask::Of::interrupts});
    return record && record->granted == present ? record : nullptr;
}

bool is_ours(const Subject& subject, const UndoRecord& record, const Setting& present, const CpuSet& online) {
    return planner::is_still_ours(record, present, online) ||
           planner::was_widened(subject, record, present, online);
}

} // namespace

void Undo::begin_pass() {
    all_written_ = true;
    pass_began_ = host::ticks_since_boot();
}

Slices Undo::note_ended() {
    const auto& journal = shared_.journal();
    for (int pid = journal.next_process(0); is_looking_ && pid > 0; pid = journal.next_process(pid)) {
        const auto scan = inventory::ProcessScan::open(shared_.root, pid);
        if (scan && !*scan)
            for (const auto& id : journal.threads(pid))
                shared_.report(shared_.executor.gone(TaskMask{id, pid, {}}));
        co_yield pause;
    }
}

void Undo::end_tasks() {
    is_looking_ = false;
    shared_.journal().drop_gone(pass_began_);
}

void Undo::end_pass() {
    if (!shared_.journal().damaged() || !all_written_) return; // the next pass tries again
    shared_.log.warn(
        fmt::format("the undo journal was damaged: {} subjects without a record are where policies want "
                    "them, so they are assumed ours and will get the kernel's defaults back",
                    assumed_));
    shared_.report(shared_.journal().mended());
}

void Undo::begin_stop() {
    constexpr std::uint64_t seconds = 5; // events of an earlier time have been handled
    const auto now = host::ticks_since_boot(), before = seconds * host::ticks_a_second();
    is_looking_ = true;
    born_from_ = now > before ? now - before : 0;
}

/// In this order: a process that has this number afterwards had it before.
state::Descent Undo::read_descent(const TaskId& process) const {
    const auto groups = shared_.root.proc().text(std::to_string(process.tid) + "/cgroup");
    const auto scan = inventory::ProcessScan::open(shared_.root, process.tid);
    if (!scan || !*scan || (*scan)->id() != process) return {};
    return {groups ? inventory::cgroup_of(*groups) : "", std::max((*scan)->session(), 0)};
}

const state::Descent& Undo::descent_of(const TaskId& process) {
    if (std::exchange(last_, process) != process)
        descent_ = shared_.acts() ? read_descent(process) : state::Descent{};
    return descent_;
}

bool Undo::is_looked_for(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const {
    return is_looking_ && born >= born_from_ && shared_.journal().is_mask_of_ours(mask, online);
}

bool Undo::may_be_left(const inventory::ProcessScan& scan, const CpuSet& online) const {
    if (!is_looking_ || scan.id().start_time < born_from_) return false;
    const auto thread = inventory::read_thread(shared_.root, scan.id().tid, scan.id().tid);
    return thread && *thread && is_looked_for((*thread)->allowed, online, scan.id().start_time);
}

/// True: the kernel gave the process to the init of its PID namespace, or to a manager of services or
/// containers, which has a control group of its own. A program that a shell started still has its parent.
bool Undo::has_lost_its_parent(const inventory::ProcessScan& scan) const {
    if (scan.parent() <= 1 || inventory::is_namespace_init(shared_.root, scan.parent())) return true;
    const auto parent = inventory::ProcessScan::open(shared_.root, scan.parent());
    return parent && *parent && (*parent)->facts().cgroup() != scan.facts().cgroup();
}

const state::Record* Undo::explain(const TaskMask& task, const CpuSet& present, int creator,
                                   const CpuSet& online) const {
    const auto& journal = shared_.journal();
    const auto born = task.task.start_time;
    if (journal.contains(task) || journal.find_past(task) != nullptr) return nullptr;
    if (const auto* record = journal.explain(creator, present, online, born)) return record;
    if (!is_looked_for(present, online, born)) return nullptr;
    const auto scan = inventory::ProcessScan::open(shared_.root, task.pid);
    if (!scan || !*scan || !has_lost_its_parent(**scan)) return nullptr;
    return journal.explain(read_descent((*scan)->id()), present, online, (*scan)->id().start_time);
}

UndoPointer Undo::recall(const Subject& subject, const Setting& present, const std::string& policy,
                         const CpuSet& online) const {
    const auto& journal = shared_.journal();
    const auto* past = journal.contains(subject) ? nullptr : journal.find_past(subject);
    if (const auto born = past == nullptr ? kept_off_from_birth(journal, subject, present) : nullptr)
        return std::make_shared<UndoRecord>(UndoRecord{born->original, present, present, policy});
    if (past == nullptr || past->standing == state::Standing::back)
        return nullptr; // others gave it what it has
    if (past->terms->undo.original == present) return nullptr;
    if (!is_ours(subject, past->terms->undo, present, online)) return nullptr;
    return std::make_shared<UndoRecord>(UndoRecord{past->terms->undo.original, present, present, policy});
}

/// An interface may be renamed, and its interrupts requested anew with its new name in their labels, while no
/// daemon looks.
void Undo::take_up(const Subject& subject, const Setting& present, const std::string& policy,
                   const CpuSet& online) {
    auto& journal = shared_.journal();
    if (const auto entry = journal.find_entry(subject)) {
        if (!(entry->subject == subject)) shared_.report(journal.put(subject, *entry->record));
        return;
    }
    if (const auto former = journal.find_at_number(subject);
        former && is_ours(subject, *former->record, present, online)) {
        shared_.report(journal.rename(former->subject, subject));
        return;
    }
    if (const auto record = recall(subject, present, policy, online))
        shared_.report(journal.put(subject, *record));
}

void Undo::follow_kernel(const Subject& subject, const Setting& present, const std::string& policy) {
    auto& journal = shared_.journal();
    const auto known = journal.find(subject);
    if (!known) return;
    auto record = *known;
    record.policy = policy;
    record.granted = present;
    if (const auto* task = std::get_if<TaskMask>(&subject)) {
        // The kernel remembers what it was asked for, and gives that again when it can, so it stays ours.
        // CPUs that are offline now are still in the mask.
        if (auto allowed = inventory::read_allowed(shared_.root, task->pid, task->task.tid))
            record.granted = std::move(*allowed);
    } else {
        record.asked = present;
    }
    shared_.report(journal.put(subject, std::move(record)));
}

void Undo::assume_ours(const Subject& subject, const Setting& present, const std::string& policy,
                       const topology::Topology& topology) {
    auto& journal = shared_.journal();
    if (journal.contains(subject)) return;
    auto original = default_of(shared_.root, subject, topology);
    if (original == present) return;
    if (shared_.report(journal.put(subject, {std::move(original), present, present, policy})))
        ++assumed_;
    else
        all_written_ = false;
}

} // namespace affinityd::core
