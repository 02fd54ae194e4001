// SPDX-License-Identifier: Apache-2.0
#include "enforcer/executor.hpp"

#include "state/unconfirmed.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::enforcer {

namespace {

using machine::Setting;
using machine::Subject;
using machine::TaskMask;
using planner::Action;
using planner::UndoRecord;

constexpr std::size_t most_diversions_tried = 64;

std::size_t place_of(Outcome outcome) { return static_cast<std::size_t>(outcome); }

bool is_task(const Subject& subject) { return std::holds_alternative<TaskMask>(subject); }

Notice notice_of(Notice::Kind kind, const Action& action, const Applied& applied) {
    return {.kind = kind,
            .subject = action.subject,
            .policy = action.policy,
            .from = action.from,
            .to = action.to,
            .granted = applied.granted,
            .outcome = applied.outcome,
            .code = applied.code};
}

void tell_fault(Notice::Kind kind, const Action& action, const Error& fault, Carried& carried) {
    auto notice = notice_of(kind, action, carried.applied);
    notice.code = fault.code;
    notice.fault = fault;
    carried.notices.push_back(std::move(notice));
}

/// One that is gone may have become its process's main thread, by running another program.
bool may_be_main_now(const Subject& subject) {
    const auto* task = std::get_if<TaskMask>(&subject);
    return task != nullptr && task->task.tid != task->pid;
}

/// A program may set again what it once read; who writes to interrupts and queues chooses what to write.
bool is_ours(const state::Journal& journal, const UndoRecord& record, const Subject& subject,
             const Setting& present, const CpuSet& online) {
    return planner::is_still_ours(record, present, online) ||
           planner::was_widened(subject, record, present, online) ||
           (is_task(subject) && journal.recall(subject, present, online));
}

/// True if the subject has something else than it was granted, and nobody else has set that. Should the
/// change not be made, as the daemon is killed, that is still ours.
bool was_changed_by_kernel(const UndoRecord& record, const Action& action,
                           const Circumstances& circumstances) {
    if (action.from == record.granted) return false;
    const auto& online = circumstances.topology.online;
    return planner::was_widened(action.subject, record, action.from, online) ||
           planner::is_still_ours(record, action.from, online,
                                  circumstances.cpuset ? circumstances.cpuset() : nullptr);
}

/// The CPUs that the kernel lets a task have, whatever it is asked for. No value: not known.
std::optional<CpuSet> room_of(const Action& action, const Circumstances& circumstances) {
    const auto& online = circumstances.topology.online;
    if (action.from.cpus().contains(online)) return online; // so no cpuset is narrower
    const auto* cpuset = circumstances.cpuset ? circumstances.cpuset() : nullptr;
    return cpuset == nullptr ? std::nullopt : std::optional(*cpuset & online);
}

/// What has to be put back later. A task that may run everywhere, or everywhere in its cpuset, has no
/// preference, and gets none back. Where CPUs are offline, the mask that sched_getaffinity(2) gives lacks
/// them, so the unfiltered one is read.
Setting original_of(const Action& action, const Circumstances& circumstances, Enforcer& enforcer) {
    const auto& topology = circumstances.topology;
    if (is_task(action.subject) && !action.from.cpus().contains(topology.online)) {
        const auto room = room_of(action, circumstances);
        if (room && !room->empty() && action.from.cpus().contains(*room)) return topology.possible;
    }
    const bool is_whole =
        topology.possible == topology.online && action.from.cpus().contains(topology.online);
    if (!is_task(action.subject) || is_whole) return action.from;
    const auto present = enforcer.present(action.subject);
    return present ? present->value_or(action.from) : action.from;
}

/// The change was not made, and its record is not to stay; but that of a thread waits for its exit, or for
/// the next look at its process: it has the main thread's number and, set a moment ago or not, its own mask
/// if it runs another program by now.
Result<void> take_back(state::Journal& journal, Enforcer& enforcer, const Action& action, Outcome outcome,
                       const std::optional<UndoRecord>& before) {
    if (has_gone(outcome) && may_be_main_now(action.subject)) {
        // Where nobody could read what it had, it was gone before, and there is nothing to put back.
        const auto record = journal.find(action.subject);
        if (record && !record->original.cpus().empty()) return {};
    }
    if (!before || (has_gone(outcome) && !enforcer.may_return(action.subject)))
        return journal.forget(action.subject);
    // What an earlier change did is still in force and still has to be undone.
    return journal.put(action.subject, *before);
}

} // namespace

bool Executor::is_put_off(const Action& action) const {
    if (action.restore) return false;
    if (refusals_.is_permanent(action.subject)) return true;
    return backoff_.size() > 0 && backoff_.rests(action, now_(), expected_.holds_for(action.subject));
}

std::optional<Carried> Executor::run(const Action& action, const Circumstances& circumstances) {
    if (action.restore) return restore(action.subject, circumstances.topology.online, circumstances.cpuset);
    if (is_put_off(action)) return std::nullopt;
    // If an earlier daemon was killed in the middle of a change, what the subject is set to tells now whether
    // that was made.
    const auto& online = circumstances.topology.online;
    auto before = journal_.find(action.subject);
    if (before && before->before && enforcer_.acts() && settle(action.subject, action.from, online))
        before =
            state::is_untouched(*before, action.from, online) ? std::nullopt : journal_.find(action.subject);
    Carried carried = carry_out(action, before, circumstances);
    // What was refused was not put right, and is no blow in a fight.
    if (!expected_.holds_for(action.subject) && took_effect(carried.applied.outcome) &&
        Backoff::is_correction(action, before)) {
        carried.notices.push_back(notice_of(Notice::Kind::corrected, action, carried.applied));
        ++corrected_[action.policy];
        if (backoff_.correct(action, before, now_()))
            carried.notices.push_back(notice_of(Notice::Kind::fight, action, carried.applied));
    }
    if (carried.applied.outcome == Outcome::full) divert(action, circumstances, carried);
    note_refusal(action, carried);
    return carried;
}

Carried Executor::carry_out(const Action& action, const std::optional<UndoRecord>& before,
                            const Circumstances& circumstances) {
    Carried carried;
    if (enforcer_.acts()) {
        const bool is_changed = before && was_changed_by_kernel(*before, action, circumstances);
        const auto seen = !before || is_changed ? original_of(action, circumstances, enforcer_) : Setting{};
        const Setting& original = before ? before->original : seen;
        if (auto done = journal_.remember(action.subject, original, action.to, action.policy,
                                          enforcer_.ticks(), is_changed ? &seen : nullptr);
            !done) {
            // Not written down, so not done: it could not be undone.
            carried.applied = {Outcome::unrecorded, {}, done.error().code};
            ++counts_[place_of(Outcome::unrecorded)];
            tell_fault(Notice::Kind::journal_failed, action, done.error(), carried);
            return carried;
        }
        if (circumstances.written_down)
            circumstances.written_down({original, action.to, action.to, action.policy});
    }
    carried.applied = enforcer_.apply(action);
    if (carried.applied.outcome == Outcome::narrowed && is_task(action.subject)) {
        // Narrower than its cpuset makes it: another program has set that in between, so it is not ours.
        const auto room = room_of(action, circumstances);
        if (room && carried.applied.granted.cpus() != (action.to.cpus() & *room))
            carried.applied = {Outcome::done, action.to, 0};
    }
    ++counts_[place_of(carried.applied.outcome)];
    if (!enforcer_.acts()) return carried;
    const auto done = took_effect(carried.applied.outcome)
                          ? journal_.confirm(action.subject, carried.applied.granted)
                          : take_back(journal_, enforcer_, action, carried.applied.outcome, before);
    if (!done) tell_fault(Notice::Kind::journal_behind, action, done.error(), carried);
    return carried;
}

Result<void> Executor::settle(const Subject& subject, const Setting& present, const CpuSet& online) {
    return state::settle_unconfirmed(journal_, subject, present, online);
}

void Executor::divert(const Action& action, const Circumstances& circumstances, Carried& carried) {
    if (!circumstances.others) return;
    auto others = circumstances.others();
    if (others.size() > most_diversions_tried) others.resize(most_diversions_tried);
    for (const unsigned cpu : others) {
        Action other = action;
        other.to = CpuSet{cpu};
        auto tried = carry_out(other, journal_.find(action.subject), circumstances);
        carried.applied = std::move(tried.applied);
        std::ranges::move(tried.notices, std::back_inserter(carried.notices));
        if (carried.applied.outcome == Outcome::full) continue;
        if (!took_effect(carried.applied.outcome)) return;
        backoff_.divert(action, carried.applied.granted, now_());
        carried.notices.push_back(notice_of(Notice::Kind::diverted, action, carried.applied));
        return;
    }
}

void Executor::note_refusal(const Action& action, Carried& carried) {
    const auto outcome = carried.applied.outcome;
    if (took_effect(outcome) || has_gone(outcome)) {
        if (!refusals_.empty()) refusals_.erase(action.subject);
        if (has_gone(outcome)) backoff_.forget(action.subject);
        return;
    }
    // The disk refused, not the subject, and that has been told.
    if (outcome == Outcome::unrecorded) return;
    if (refusals_.add(action.subject, {outcome, carried.applied.code, action.to},
                      expected_.holds_for(action.subject)))
        carried.notices.push_back(notice_of(Notice::Kind::refused, action, carried.applied));
}

/// Only what is ours.
Carried Executor::restore_present(const Subject& subject, const UndoRecord& record, const Setting& present,
                                  const CpuSet& online, const CpusetLookup& cpuset) {
    const Action action{subject, present, record.original, record.policy, planner::Restored::asked_for, true};
    Carried carried;
    if (is_ours(journal_, record, subject, present, online) ||
        (cpuset && planner::is_still_ours(record, present, online, cpuset()))) {
        carried.applied = enforcer_.apply(action);
    } else {
        carried.applied = {Outcome::foreign, present, 0};
        carried.notices.push_back(notice_of(Notice::Kind::foreign, action, carried.applied));
    }
    return carried;
}

Carried Executor::restore(const Subject& subject, const CpuSet& online, const CpusetLookup& cpuset) {
    Carried carried{{Outcome::gone, {}, 0}};
    const auto record = journal_.find(subject);
    if (!record) return carried;
    const auto present = enforcer_.present(subject);
    if (!present) // nothing is known of it
        carried.applied = {Outcome::busy, {}, present.error().code};
    else if (*present)
        carried = restore_present(subject, *record, **present, online, cpuset);
    const auto outcome = carried.applied.outcome;
    ++counts_[place_of(outcome)];
    if (!took_effect(outcome) && !has_gone(outcome) && outcome != Outcome::foreign) {
        const Action action{subject,
                            present ? present->value_or(Setting{}) : Setting{},
                            record->original,
                            record->policy,
                            planner::Restored::asked_for,
                            true};
        if (!is_of_the_moment(outcome) || !expected_.holds_for(subject)) // else the next pass tries again
            carried.notices.push_back(notice_of(Notice::Kind::not_put_back, action, carried.applied));
        return carried; // the record stays: a later daemon may succeed
    }
    // An interface that is elsewhere for a while: its record waits for it, and outlives this daemon.
    if (has_gone(outcome) && enforcer_.may_return(subject)) return carried;
    refusals_.erase(subject);
    backoff_.forget(subject);
    const auto done = has_gone(outcome) ? journal_.forget(subject) : journal_.settle(subject);
    if (!done)
        tell_fault(Notice::Kind::journal_behind,
                   {subject, {}, record->original, record->policy, planner::Restored::asked_for, true},
                   done.error(), carried);
    return carried;
}

std::optional<state::MaskSource> Executor::inherited(const TaskMask& task, const CpuSet& present, int creator,
                                                     const CpuSet& online) {
    if (journal_.contains(task) || journal_.contents().past().contains(task)) return std::nullopt;
    auto source = journal_.find_mask_source(creator, present, online, task.task.start_time);
    if (source && source->original == present) return std::nullopt;
    return source;
}

Result<void> Executor::record_inherited(const TaskMask& task, const CpuSet& present, int creator,
                                        const CpuSet& online) {
    const auto source = inherited(task, present, creator, online);
    if (!source) return {};
    return journal_.put(task, {source->original, present, present, source->policy});
}

Carried Executor::put_back_inherited(const TaskMask& task, const CpuSet& present,
                                     const state::MaskSource& source) {
    Carried carried;
    carried.applied =
        enforcer_.apply({task, present, source.original, source.policy, planner::Restored::asked_for, true});
    ++counts_[place_of(carried.applied.outcome)];
    journal_.mask_sources().add_former(task.pid, present, source); // it may have created others
    return carried;
}

Result<void> Executor::gone(const Subject& subject) {
    refusals_.erase(subject);
    backoff_.forget(subject);
    return journal_.forget(subject);
}

void Executor::drop_gone(std::size_t most) {
    for (auto left = std::min(most, refusals_.size()); left > 0 && !refusals_.empty(); --left) {
        const auto subject = refusals_.rotate();
        const auto present = enforcer_.present(subject);
        if (!present || *present) continue;
        refusals_.erase(subject);
        backoff_.forget(subject);
    }
    const auto& past = journal_.contents().past();
    for (auto left = std::min(most, past.size()); left > 0; --left) {
        const auto found = past.next(past_);
        if (!found) {
            past_ = {};
            continue;
        }
        const auto& subject = found->entry.subject;
        if (std::holds_alternative<machine::UnitCpuset>(subject)) continue; // systemd's
        const auto present = enforcer_.present(subject);
        if (!present || *present || enforcer_.may_return(subject)) continue;
        if (!journal_.forget(subject)) return; // the next pass tries again
    }
}

} // namespace affinityd::enforcer
