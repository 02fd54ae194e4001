// SPDX-License-Identifier: Apache-2.0
#include "app/undo.hpp"

#include "app/place_thread.hpp"
#include "host/root.hpp"
#include "host/self.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityd::app {

using machine::Setting;
using machine::Subject;
using machine::TaskMask;
using planner::UndoPointer;
using planner::UndoRecord;
using state::Standing;

namespace {

Setting default_of(const host::Root& root, const Subject& subject, const topology::Topology& topology) {
    if (std::holds_alternative<TaskMask>(subject)) return topology.possible;
    if (std::holds_alternative<machine::FlowTable>(subject)) return machine::FlowCount{};
    if (!std::holds_alternative<machine::IrqMask>(subject))
        return CpuSet{}; // steering maps: off, units: not set
    return root.proc().cpu_mask("irq/default_smp_affinity").value_or(topology.online);
}

bool is_ours(const Subject& subject, const UndoRecord& record, const Setting& present, const CpuSet& online) {
    return planner::is_still_ours(record, present, online) ||
           planner::was_widened(subject, record, present, online);
}

} // namespace

void Undo::note_dead() {
    auto& journal = shared_.journal();
    int pid = 0;             // records come process by process: each number is looked at once
    std::uint64_t begun = 0; // the process that has the number now, or a later one; 0: nothing is known
    std::vector<std::pair<TaskMask, std::uint64_t>> dead; // and the last moment of each
    const auto look = [&](const Subject& subject) {
        const auto* task = std::get_if<TaskMask>(&subject);
        if (task == nullptr) return;
        if (std::exchange(pid, task->pid) != task->pid) {
            const auto scan = inventory::ProcessScan::open(shared_.root, task->pid);
            begun = !scan ? 0 : *scan ? (*scan)->id().start_time : host::ticks_since_boot() + 1;
        }
        if (task->task.start_time < begun) dead.emplace_back(*task, begun - 1);
    };
    for (state::Journal::Cursor cursor; const auto entry = journal.next(cursor);)
        look(entry->subject);
    for (state::Journal::Cursor cursor; const auto* past = journal.next_past(cursor);)
        if (past->second.standing != Standing::gone) look(past->first);
    for (const auto& [task, end] : dead)
        if (!shared_.report(journal.part(task, Standing::gone, end))) return; // the first pass tries again
}

void Undo::begin_pass() {
    all_written_ = true;
    pass_began_ = host::ticks_since_boot();
}

void Undo::end_tasks() {
    if (const auto count = std::exchange(left_, 0); count > 0)
        shared_.log.warn(
            fmt::format("{} tasks have masks that policies gave out, and nothing shows that they have "
                        "them from there, so they are left alone: {}",
                        count, std::exchange(first_left_, {})));
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

/// It was given to the init of its PID namespace, or to a manager of services or containers, which has a
/// control group of its own. A program that a shell started has its parent still.
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

void Undo::leave(const TaskMask& task, const CpuSet& present, const CpuSet& online) {
    constexpr std::size_t most_named = 3;
    const auto& journal = shared_.journal();
    if (!is_looked_for(present, online, task.task.start_time) || journal.find_past(task) != nullptr) return;
    // Nearly every task of the machine has all CPUs: those that may have them from us are told.
    if (present.contains(online)) {
        const auto scan = inventory::ProcessScan::open(shared_.root, task.pid);
        if (!scan || !*scan ||
            journal.explain(read_descent((*scan)->id()), present, online, task.task.start_time) == nullptr)
            return;
    }
    if (++left_ > most_named + 1) return;
    const auto* separator = left_ == 1 ? "" : ", ";
    first_left_ += left_ > most_named ? " and others" : separator + machine::to_string(task);
}

UndoPointer Undo::recall(const Subject& subject, const Setting& present, const std::string& policy,
                         const CpuSet& online) const {
    const auto& journal = shared_.journal();
    const auto* past = journal.contains(subject) ? nullptr : journal.find_past(subject);
    if (past == nullptr || past->terms->undo.original == present) return nullptr;
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

void Restorer::restore(const state::Entry& entry) {
    const auto* task = std::get_if<TaskMask>(&entry.subject);
    const auto cpuset = [&] { return task == nullptr ? nullptr : sources_.cpuset(task->pid); };
    const auto [applied, notices] = shared_.executor.restore(entry.subject, entry.record, online_, cpuset);
    log_notices(shared_.log, notices);
    if (enforcer::has_gone(applied.outcome)) return;
    auto& counts = changes_.policies[entry.record->policy];
    if (enforcer::took_effect(applied.outcome))
        counts.put_back.add(entry.subject);
    else if (applied.outcome == enforcer::Outcome::foreign)
        ++counts.left;
    else if (++counts.not_put_back; counts.reason.empty())
        counts.reason = reason_of(applied);
}

bool Restorer::step(const OutOfTime& out_of_time) {
    if (!std::exchange(is_begun_, true)) sources_.refresh(); // cpusets may be others by now
    auto& journal = shared_.journal();
    // The records of what was kept are in force again, and restored with all others.
    while (with_kept_) {
        const auto* past = journal.next_past(kept_cursor_);
        with_kept_ = past != nullptr;
        if (past != nullptr && past->second.standing == Standing::kept)
            if (const state::Entry entry{past->first, past->second.undo()}; choose_(entry) == Choice::restore)
                shared_.report(journal.put(entry.subject, *entry.record));
        if (out_of_time()) return false;
    }
    while (const auto entry = journal.next(cursor_)) {
        const auto choice = choose_(*entry);
        // systemd answers for units in its own time: app::Units restores them.
        const bool is_unit = std::holds_alternative<machine::UnitCpuset>(entry->subject);
        if (choice == Choice::restore && is_unit)
            ++units_;
        else if (choice == Choice::restore)
            restore(*entry);
        else if (choice == Choice::keep && !is_unit)
            shared_.report(shared_.executor.part(entry->subject, Standing::kept));
        if (out_of_time()) return false;
    }
    if (units_ > 0)
        changes_.note =
            fmt::format("systemd is asked to put {} back", to_string(status::SubjectCounts{.units = units_}));
    done_(std::move(changes_));
    return true;
}

bool OrphanRestorer::begin_round() {
    constexpr unsigned enough_empty_rounds = 2;
    constexpr unsigned most_rounds = 16; // a task that was restored passes none of our masks on
    if (rounds_ > 0) empty_rounds_ = is_empty_ ? empty_rounds_ + 1 : 0;
    if (empty_rounds_ == enough_empty_rounds || rounds_++ == most_rounds) return false;
    is_empty_ = true;
    auto pids = inventory::PidStream::open(shared_.root);
    if (!pids) {
        shared_.log.error("the processes could not be listed: " + pids.error().to_string());
        return false;
    }
    pids_ = std::move(*pids);
    return true;
}

void OrphanRestorer::begin_process(int pid) {
    auto scan = inventory::ProcessScan::open(shared_.root, pid);
    if (!scan || !*scan || (*scan)->is_kernel()) return;
    const auto& journal = shared_.journal();
    if (journal.has_process(pid) || journal.has_process((*scan)->parent()) ||
        undo_.may_be_left(**scan, online_))
        scan_ = std::move(**scan);
}

void OrphanRestorer::restore(const inventory::Thread& thread) {
    const int pid = scan_->id().tid;
    const TaskMask task{thread.id, pid, thread.comm};
    const int creator = thread.id == scan_->id() ? scan_->parent() : pid;
    const auto* source = undo_.explain(task, thread.allowed, creator, online_);
    if (source == nullptr || source->standing == Standing::kept || keeps_(source->terms->undo.policy)) return;
    const auto& undo = source->terms->undo;
    const auto record =
        std::make_shared<UndoRecord>(UndoRecord{undo.original, thread.allowed, thread.allowed, undo.policy});
    // Its own children are explained by it. Where that cannot be written, it is restored all the same.
    static_cast<void>(
        shared_.journal().put(task, *record, &undo_.descent_of(scan_->id()), thread.id.start_time));
    const auto carried = shared_.executor.restore(task, record, online_);
    log_notices(shared_.log, carried.notices);
    if (enforcer::took_effect(carried.applied.outcome)) is_empty_ = false;
}

bool OrphanRestorer::step(const OutOfTime& out_of_time) {
    while (true) {
        if (!pids_ && !begin_round()) return true;
        if (scan_) {
            if (!scan_->step(out_of_time)) return false;
            if (const auto threads = scan_->take_threads())
                for (const auto& thread : *threads)
                    restore(thread);
            scan_.reset();
        } else if (const auto pid = pids_->next().value_or(std::nullopt)) {
            begin_process(*pid);
        } else {
            pids_.reset();
        }
        if (out_of_time()) return false;
    }
}

} // namespace affinityd::app
