// SPDX-License-Identifier: Apache-2.0
#include "enforcer/executor.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::enforcer {

namespace {

using machine::Setting;
using machine::Subject;
using machine::TaskMask;
using planner::Action;
using planner::UndoPointer;
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

/// The original that has to be put back later. A task that may run everywhere, or everywhere in its cpuset,
/// has no preference, and gets none back. Where CPUs are offline, the mask that sched_getaffinity(2) gives
/// lacks them, so the unfiltered one is read.
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

} // namespace

void Executor::begin_pass() {
    for (auto* changes : {&of_tasks_, &of_queues_})
        *changes = {false, changes->is_expected()};
    refusals_.begin_pass();
}

void Executor::end_pass() { of_tasks_.is_in_pass = of_queues_.is_in_pass = false; }

bool Executor::is_put_off(const Action& action) const {
    if (action.restore) return false;
    if (refusals_.is_permanent(action.subject)) return true;
    return backoff_.size() > 0 && backoff_.rests(action, now_(), is_expected(action.subject));
}

std::optional<Carried> Executor::run(const Action& action, const Circumstances& circumstances) {
    if (action.restore)
        return restore(action.subject, action.record, circumstances.topology.online, circumstances.cpuset);
    if (is_put_off(action)) return std::nullopt;
    Carried carried = carry_out(action, circumstances);
    // A refused write does not count towards the limit of a fight.
    if (!is_expected(action.subject) && took_effect(carried.applied.outcome) &&
        Backoff::is_correction(action, action.record)) {
        carried.notices.push_back(notice_of(Notice::Kind::corrected, action, carried.applied));
        ++corrected_[action.policy];
        if (backoff_.correct(action, action.record, now_()))
            carried.notices.push_back(notice_of(Notice::Kind::fight, action, carried.applied));
    }
    if (carried.applied.outcome == Outcome::full) divert(action, circumstances, carried);
    note_refusal(action, carried);
    return carried;
}

Carried Executor::carry_out(const Action& action, const Circumstances& circumstances) {
    Carried carried;
    UndoPointer written;
    if (enforcer_.acts()) {
        const auto& before = action.record;
        const bool is_changed = before && was_changed_by_kernel(*before, action, circumstances);
        const auto seen = !before || is_changed ? original_of(action, circumstances, enforcer_) : Setting{};
        const auto& present = is_changed ? seen : action.from;
        auto done = remember(action, before ? before->original : seen, present, circumstances.descent);
        if (!done) {
            // Not written down, so not done: it could not be undone.
            carried.applied = {Outcome::unrecorded, {}, done.error().code};
            ++counts_[place_of(Outcome::unrecorded)];
            tell_fault(Notice::Kind::journal_failed, action, done.error(), carried);
            return carried;
        }
        written = std::move(*done);
    }
    carried.applied = enforcer_.apply(action);
    if (carried.applied.outcome == Outcome::narrowed && is_task(action.subject)) {
        // Narrower than its cpuset makes it: another program has set that in between, so it is not ours.
        const auto room = room_of(action, circumstances);
        if (room && carried.applied.granted.cpus() != (action.to.cpus() & *room))
            carried.applied = {Outcome::done, action.to, 0};
    }
    ++counts_[place_of(carried.applied.outcome)];
    if (!written) return carried;
    if (const auto done = close(action, carried.applied, written); !done)
        tell_fault(Notice::Kind::journal_behind, action, done.error(), carried);
    return carried;
}

Result<void> Executor::close(const Action& action, const Applied& applied, const UndoPointer& written) {
    const auto& subject = action.subject;
    if (took_effect(applied.outcome)) return confirm(subject, *written, applied.granted);
    if (!has_gone(applied.outcome)) return take_back(subject, action.record);
    // One that is gone may be its process's main thread by now, by running another program. Its record waits
    // for its exit, or for the next look at its process; where nothing could be read, it was gone before.
    const auto* task = std::get_if<TaskMask>(&subject);
    const bool may_be_main = task != nullptr && task->task.tid != task->pid;
    if (may_be_main && !written->original.cpus().empty()) return {};
    return enforcer_.may_return(subject) ? take_back(subject, action.record) : gone(subject);
}

Result<UndoPointer> Executor::remember(const Action& action, const Setting& original, const Setting& present,
                                       const state::Descent* descent) {
    const auto& known = action.record;
    UndoRecord record{original, action.to, action.to, action.policy};
    if (!known)
        record.before = original;
    else if (known->before == present || (known->asked == action.to && known->granted != present))
        record.before = known->before; // it is still that, or another program has set it
    else
        record.before = known->granted;
    const bool is_by_kernel = known && present != action.from;
    if (is_by_kernel) record.before = present;
    if (record.before == record.asked) record.before.reset();
    return journal_.put(action.subject, std::move(record), descent, enforcer_.ticks());
}

Result<void> Executor::confirm(const Subject& subject, const UndoRecord& record, const Setting& granted) {
    auto confirmed = record;
    confirmed.granted = granted;
    if (confirmed.before == confirmed.original) confirmed.before.reset();
    if (confirmed == record) return {};
    const auto done = journal_.put(subject, std::move(confirmed));
    return done ? Result<void>() : std::unexpected(done.error());
}

Result<void> Executor::take_back(const Subject& subject, const UndoPointer& before) {
    if (!before) return journal_.forget(subject);
    // The effect of an earlier change is still in force and still has to be undone.
    const auto done = journal_.put(subject, *before);
    return done ? Result<void>() : std::unexpected(done.error());
}

void Executor::divert(const Action& action, const Circumstances& circumstances, Carried& carried) {
    if (!circumstances.others) return;
    auto others = circumstances.others();
    if (others.size() > most_diversions_tried) others.resize(most_diversions_tried);
    for (const unsigned cpu : others) {
        Action other = action;
        other.to = CpuSet{cpu};
        auto tried = carry_out(other, circumstances);
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
                      is_expected(action.subject)))
        carried.notices.push_back(notice_of(Notice::Kind::refused, action, carried.applied));
}

Carried Executor::restore(const Subject& subject, const UndoPointer& record, const CpuSet& online,
                          const CpusetLookup& cpuset) {
    Carried carried{{Outcome::gone, {}, 0}};
    if (!record) return carried;
    const auto present = enforcer_.present(subject);
    const auto from = present ? present->value_or(Setting{}) : Setting{};
    const Action action{subject, from,  record->original, record->policy, planner::Restored::asked_for,
                        true,    record};
    if (!present) { // nothing is known of it
        carried.applied = {Outcome::busy, {}, present.error().code};
    } else if (*present) {
        const bool is_ours = planner::is_still_ours(*record, from, online) ||
                             planner::was_widened(subject, *record, from, online) ||
                             (cpuset && planner::is_still_ours(*record, from, online, cpuset()));
        carried.applied = is_ours ? enforcer_.apply(action) : Applied{Outcome::foreign, from, 0};
        if (!is_ours) carried.notices.push_back(notice_of(Notice::Kind::foreign, action, carried.applied));
    }
    const auto outcome = carried.applied.outcome;
    ++counts_[place_of(outcome)];
    if (!took_effect(outcome) && !has_gone(outcome) && outcome != Outcome::foreign) {
        if (!is_of_the_moment(outcome) || !is_expected(subject)) // else the next pass tries again
            carried.notices.push_back(notice_of(Notice::Kind::not_put_back, action, carried.applied));
        return carried; // the record stays: a later daemon may succeed
    }
    // An interface that is elsewhere for a while: its record waits for it, and outlives this daemon.
    if (has_gone(outcome) && enforcer_.may_return(subject)) return carried;
    refusals_.erase(subject);
    backoff_.forget(subject);
    const auto standing = has_gone(outcome) ? state::Standing::gone : state::Standing::back;
    if (const auto done = part(subject, standing); !done)
        tell_fault(Notice::Kind::journal_behind, action, done.error(), carried);
    return carried;
}

bool Executor::is_gone(const Subject& subject) const {
    const auto present = enforcer_.present(subject);
    return present && !*present && !enforcer_.may_return(subject); // an Error: nothing is known
}

Result<void> Executor::gone(const Subject& subject) {
    refusals_.erase(subject);
    backoff_.forget(subject);
    return part(subject, state::Standing::gone);
}

void Executor::drop_gone(std::size_t most) {
    for (auto left = std::min(most, refusals_.size()); left > 0 && !refusals_.empty(); --left) {
        const auto subject = refusals_.rotate();
        const auto present = enforcer_.present(subject);
        if (!present || *present) continue;
        refusals_.erase(subject);
        backoff_.forget(subject);
    }
    for (; most > 0; --most) {
        const auto* found = journal_.next_past(past_);
        if (found == nullptr) return past_.reset();
        const auto& [subject, record] = *found;
        if (record.standing == state::Standing::gone) continue;
        if (std::holds_alternative<machine::UnitCpuset>(subject)) continue; // systemd's
        if (!is_gone(subject)) continue;
        if (!part(Subject(subject), state::Standing::gone)) return; // the next pass tries again
    }
}

} // namespace affinityd::enforcer
