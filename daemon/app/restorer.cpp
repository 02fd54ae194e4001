// SPDX-License-Identifier: Apache-2.0
#include "app/restorer.hpp"

#include "app/log.hpp"
#include "app/placed.hpp"

#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

void Restorer::treat(const state::Entry& entry) {
    switch (choose_(entry)) {
    case Choice::skip:
        return;
    case Choice::keep:
        if (const auto done = parts_.executor.part(entry.subject, state::Standing::kept); !done)
            parts_.log.error(done.error().to_string());
        return;
    case Choice::restore:
        const auto* task = std::get_if<machine::TaskMask>(&entry.subject);
        const auto cpuset = [&] { return task == nullptr ? nullptr : parts_.sources.cpuset(task->pid); };
        const auto carried = parts_.executor.restore(entry.subject, entry.record, online_, cpuset);
        log_notices(parts_.log, carried.notices);
        count(entry, carried.applied);
    }
}

void Restorer::count(const state::Entry& entry, const enforcer::Applied& applied) {
    if (enforcer::has_gone(applied.outcome)) return;
    auto& counts = changes_.policies[entry.record->policy];
    if (enforcer::took_effect(applied.outcome))
        counts.put_back.add(entry.subject);
    else if (applied.outcome == enforcer::Outcome::foreign)
        ++counts.left;
    else if (++counts.not_put_back; counts.reason.empty())
        counts.reason = reason_of(applied);
}

/// Its record is in force again, and it is put back with all others.
void Restorer::resume(const state::Entry& entry) {
    if (choose_(entry) != Choice::restore) return;
    if (const auto done = parts_.executor.journal().put(entry.subject, *entry.record); !done)
        parts_.log.error(done.error().to_string());
}

bool Restorer::step(const OutOfTime& out_of_time) {
    if (!std::exchange(is_begun_, true)) parts_.sources.refresh(); // cpusets may be others by now
    while (with_kept_) {
        const auto* past = parts_.executor.journal().next_past(kept_cursor_);
        with_kept_ = past != nullptr;
        if (past != nullptr && past->second.standing == state::Standing::kept)
            resume({past->first, past->second.undo()});
        if (out_of_time()) return false;
    }
    while (const auto entry = parts_.executor.journal().next(cursor_)) {
        // systemd answers for units in its own time: app::Units restores them.
        if (!std::holds_alternative<machine::UnitCpuset>(entry->subject))
            treat(*entry);
        else if (choose_(*entry) == Choice::restore)
            ++units_;
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
    if (rounds_ > 0) empty_rounds_ = count_ == 0 ? empty_rounds_ + 1 : 0;
    if (empty_rounds_ == enough_empty_rounds || rounds_++ == most_rounds) return false;
    count_ = 0;
    auto pids = inventory::PidStream::open(parts_.root);
    if (!pids) {
        parts_.log.error("the processes could not be listed: " + pids.error().to_string());
        return false;
    }
    pids_ = std::move(*pids);
    return true;
}

void OrphanRestorer::begin_process(int pid) {
    auto scan = inventory::ProcessScan::open(parts_.root, pid);
    if (!scan || !*scan || (*scan)->is_kernel()) return;
    const auto& journal = parts_.executor.journal();
    if (journal.has_process(pid) || journal.has_process((*scan)->parent()) ||
        parts_.undo.may_be_left(**scan, online_))
        scan_ = std::move(**scan);
}

void OrphanRestorer::restore(const inventory::Thread& thread) {
    const int pid = scan_->id().tid;
    const machine::TaskMask task{thread.id, pid, thread.comm};
    const int creator = thread.id == scan_->id() ? scan_->parent() : pid;
    const auto* source = parts_.undo.explain(task, thread.allowed, creator, online_).record;
    if (source == nullptr || source->standing == state::Standing::kept || keeps_(source->terms->undo.policy))
        return;
    const auto& undo = source->terms->undo;
    const auto record = std::make_shared<planner::UndoRecord>(
        planner::UndoRecord{undo.original, thread.allowed, thread.allowed, undo.policy});
    // Its own children are explained by it. Where that cannot be written, it is restored all the same.
    static_cast<void>(parts_.executor.journal().put(task, *record, &parts_.undo.descent_of(scan_->id()),
                                                    thread.id.start_time));
    const auto carried = parts_.executor.restore(task, record, online_);
    log_notices(parts_.log, carried.notices);
    if (enforcer::took_effect(carried.applied.outcome)) ++count_;
}

bool OrphanRestorer::finish_process(const OutOfTime& out_of_time) {
    if (!scan_->step(out_of_time)) return false;
    if (const auto threads = scan_->take_threads())
        for (const auto& thread : *threads)
            restore(thread);
    scan_.reset();
    return true;
}

bool OrphanRestorer::step(const OutOfTime& out_of_time) {
    while (true) {
        if (!pids_ && !begin_round()) return true;
        if (scan_) {
            if (!finish_process(out_of_time)) return false;
        } else if (const auto pid = pids_->next().value_or(std::nullopt)) {
            begin_process(*pid);
        } else {
            pids_.reset();
        }
        if (out_of_time()) return false;
    }
}

} // namespace affinityd::app
