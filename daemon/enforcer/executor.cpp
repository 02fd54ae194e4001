// SPDX-License-Identifier: Apache-2.0
#include "enforcer/executor.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace affinityd::enforcer {

namespace {

using machine::Setting;
using machine::Subject;
using machine::TaskMask;
using planner::Action;
using planner::UndoPointer;
using planner::UndoRecord;

constexpr std::chrono::minutes diverted_for{10}, full_for{1}; // vectors come free when devices go: rarely
constexpr std::chrono::minutes fight_window{10};              // corrections further apart are no fight
constexpr unsigned fight_threshold = 5, most_doublings = 6, most_diversions_tried = 64;

/// The first rest after a fight; each further one lasts twice as long. Programs that set masks of their own
/// do so every few seconds: the longest is about ten minutes. Passes are a minute apart, and irqbalance is
/// slower than programs: the longest of a queue is about an hour.
std::chrono::seconds first_rest(const Subject& subject) {
    return std::chrono::seconds(std::holds_alternative<TaskMask>(subject) ? 10 : 60);
}

std::size_t place_of(Outcome outcome) { return static_cast<std::size_t>(outcome); }

bool is_task(const Subject& subject) { return std::holds_alternative<TaskMask>(subject); }
bool is_irq(const Subject& subject) { return std::holds_alternative<machine::IrqMask>(subject); }

void tell(Notice::Kind kind, const Action& action, Carried& carried, std::optional<Error> fault = {}) {
    carried.notices.push_back({kind, action, carried.applied, std::move(fault)});
}

/// True if the subject has something else than it was granted, and no other program has set that. If the
/// daemon is killed before it writes, the setting that is there now must still count as ours.
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

std::string to_string(const Refusal& refusal) {
    const std::string text(to_string(refusal.outcome));
    return refusal.code == 0 ? text : text + ": " + std::generic_category().message(refusal.code);
}

void Executor::begin_pass() {
    for (auto* changes : {&of_tasks_, &of_queues_})
        *changes = {false, changes->is_expected()};
    ++passes_;
}

void Executor::end_pass() { of_tasks_.is_in_pass = of_queues_.is_in_pass = false; }

const Trouble* Executor::trouble(const Subject& subject) const {
    const auto found = troubles_.empty() ? troubles_.end() : troubles_.find(subject);
    return found == troubles_.end() ? nullptr : &found->second;
}

const Trouble* Executor::rest(const Subject& subject) const {
    const auto* found = trouble(subject);
    return found != nullptr && now_() < found->rests_until ? found : nullptr;
}

Trouble& Executor::trouble_of(const Subject& subject) {
    if (const auto found = troubles_.find(subject); found != troubles_.end()) return found->second;
    if (troubles_.size() >= most_troubles) troubles_.erase(troubles_.begin());
    return troubles_[subject];
}

bool Executor::is_put_off(const Action& action) const {
    const auto* found = action.restore ? nullptr : trouble(action.subject);
    if (found == nullptr) return false;
    if (found->never_moves) return true;
    if (now_() >= found->rests_until) return false;
    return found->diverted ? action.to == found->wanted && action.from == found->diverted
                           : !is_expected(action.subject);
}

std::optional<Executor::Clock::time_point> Executor::next_look(const Subject& subject) const {
    constexpr std::chrono::seconds soon{1}, long_enough{16};
    const auto* found = trouble(subject);
    if (found == nullptr || found->corrections == 0) return std::nullopt;
    const auto now = now_();
    if (now < found->rests_until) return found->rests_until;
    const auto held = now - found->corrected;
    if (held >= long_enough) return std::nullopt;
    return now + std::max<Clock::duration>(soon * (1U << std::min(found->corrections - 1, 5U)), held);
}

std::optional<Carried> Executor::run(const Action& action, const Circumstances& circumstances) {
    if (action.restore)
        return restore(action.subject, action.record, circumstances.topology.online, circumstances.cpuset);
    if (is_put_off(action)) return std::nullopt;
    Carried carried = carry_out(action, circumstances);
    // A refused write does not count towards the limit of a fight.
    const bool had_it = action.record && action.record->asked == action.to;
    if (had_it && took_effect(carried.applied.outcome) && !is_expected(action.subject))
        note_correction(action, carried);
    if (carried.applied.outcome == Outcome::full) divert(action, circumstances, carried);
    note_refusal(action, carried);
    return carried;
}

/// The subject had what we want, and was put right once more.
void Executor::note_correction(const Action& action, Carried& carried) {
    tell(Notice::Kind::corrected, action, carried);
    ++corrected_[action.policy];
    auto& trouble = trouble_of(action.subject);
    const auto now = now_();
    if (now - std::max(trouble.corrected, trouble.rests_until) > fight_window) trouble.corrections = 0;
    trouble.corrected = now;
    if (++trouble.corrections < fight_threshold) return;
    const auto doublings = std::min(trouble.corrections - fight_threshold, most_doublings);
    trouble.rests_until = now + first_rest(action.subject) * (1U << doublings);
    trouble.diverted.reset();
    tell(Notice::Kind::fight, action, carried);
}

Carried Executor::carry_out(const Action& action, const Circumstances& circumstances) {
    if (now_() >= full_until_) full_ = {};
    if (is_irq(action.subject) && full_.contains(action.to.cpus()))
        return Carried{{Outcome::full, {}, static_cast<int>(std::errc::no_space_on_device)}};
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
            tell(Notice::Kind::journal_failed, action, carried, done.error());
            return carried;
        }
        written = std::move(*done);
    }
    carried.applied = enforcer_.apply(action);
    if (carried.applied.outcome == Outcome::full) full_ |= action.to.cpus(), full_until_ = now_() + full_for;
    if (carried.applied.outcome == Outcome::narrowed && is_task(action.subject)) {
        // Narrower than its cpuset makes it: another program has set that in between, so it is not ours.
        const auto room = room_of(action, circumstances);
        if (room && carried.applied.granted.cpus() != (action.to.cpus() & *room))
            carried.applied = {Outcome::done, action.to, 0};
    }
    ++counts_[place_of(carried.applied.outcome)];
    if (!written) return carried;
    if (const auto done = close(action, carried.applied, written); !done)
        tell(Notice::Kind::journal_behind, action, carried, done.error());
    return carried;
}

Result<void> Executor::close(const Action& action, const Applied& applied, const UndoPointer& written) {
    const auto& subject = action.subject;
    if (took_effect(applied.outcome)) return confirm(subject, *written, applied.granted);
    if (applied.outcome != Outcome::gone) return take_back(subject, action.record);
    // A thread that is gone may be its process's main thread by now, after execve(2): the record waits for
    // its exit, or for the next look at the process. Where nothing could be read, the thread was gone before.
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
    if (!before) return journal_.drop(subject);
    // The effect of an earlier change is still in force and still has to be undone.
    const auto done = journal_.put(subject, *before);
    return done ? Result<void>() : std::unexpected(done.error());
}

void Executor::divert(const Action& action, const Circumstances& circumstances, Carried& carried) {
    if (!circumstances.others) return;
    auto others = circumstances.others();
    std::erase_if(others, [&](unsigned cpu) { return full_.contains(cpu); });
    if (others.size() > most_diversions_tried) others.resize(most_diversions_tried);
    for (const unsigned cpu : others) {
        Action other = action;
        other.to = CpuSet{cpu};
        auto tried = carry_out(other, circumstances);
        carried.applied = std::move(tried.applied);
        std::ranges::move(tried.notices, std::back_inserter(carried.notices));
        if (carried.applied.outcome == Outcome::full) continue;
        if (!took_effect(carried.applied.outcome)) return;
        auto& trouble = trouble_of(action.subject);
        trouble.rests_until = now_() + diverted_for;
        trouble.wanted = action.to;
        trouble.diverted = carried.applied.granted;
        tell(Notice::Kind::diverted, action, carried);
        return;
    }
}

/// When CPUs, cpusets or interfaces change, a mask may have no CPU for a moment, or a line no handler: what
/// the next pass mends anyway is not told, but what that pass is refused, too.
void Executor::note_refusal(const Action& action, Carried& carried) {
    const auto& subject = action.subject;
    const auto outcome = carried.applied.outcome;
    if (outcome == Outcome::gone) {
        troubles_.erase(subject);
    } else if (took_effect(outcome)) {
        const auto found = troubles_.find(subject);
        if (found == troubles_.end()) return;
        auto& trouble = found->second;
        trouble.refusal.reset();
        if (trouble.diverted && *trouble.diverted != carried.applied.granted) // it has what is wanted
            trouble.diverted.reset(), trouble.rests_until = {};
        if (trouble.corrections == 0 && !trouble.diverted) troubles_.erase(found);
    }
    // Where nothing could be written down, the disk refused, not the subject, and that has been told.
    if (outcome == Outcome::gone || took_effect(outcome) || outcome == Outcome::unrecorded) return;
    auto& trouble = trouble_of(subject);
    auto& refusal = trouble.refusal;
    if (!refusal || refusal->outcome != outcome || refusal->code != carried.applied.code)
        refusal = {outcome, carried.applied.code, passes_};
    // A task of the kernel's that is immovable may become movable; a managed interrupt never does. But a line
    // that is being set up or taken down refuses with the same errno.
    const bool is_managed = outcome == Outcome::immovable && is_irq(subject);
    const bool is_momentary = is_of_the_moment(outcome);
    const bool is_unclear = (is_managed || is_momentary) && is_expected(subject);
    trouble.never_moves |= is_managed && !is_unclear;
    if (is_unclear || (is_momentary && refusal->since == passes_)) return;
    if (!std::exchange(refusal->is_told, true)) tell(Notice::Kind::refused, action, carried);
}

Carried Executor::restore(const Subject& subject, const UndoPointer& record, const CpuSet& online,
                          const CpusetLookup& cpuset) {
    Carried carried{{Outcome::gone, {}, 0}};
    if (!record) return carried;
    const auto present = enforcer_.present(subject);
    const auto from = present ? present->value_or(Setting{}) : Setting{};
    const Action action{subject, from, record->original, record->policy, planner::put_back, true, record};
    if (!present) { // nothing is known of it
        carried.applied = {Outcome::busy, {}, present.error().code};
    } else if (*present) {
        const bool is_ours = planner::is_still_ours(*record, from, online) ||
                             planner::was_widened(subject, *record, from, online) ||
                             (cpuset && planner::is_still_ours(*record, from, online, cpuset()));
        carried.applied = is_ours ? enforcer_.apply(action) : Applied{Outcome::foreign, from, 0};
        if (!is_ours) tell(Notice::Kind::foreign, action, carried);
    }
    const auto outcome = carried.applied.outcome;
    ++counts_[place_of(outcome)];
    if (!took_effect(outcome) && outcome != Outcome::gone && outcome != Outcome::foreign) {
        if (!is_of_the_moment(outcome) || !is_expected(subject)) // else the next pass tries again
            tell(Notice::Kind::not_put_back, action, carried);
        return carried; // the record stays: a later daemon may succeed
    }
    // An interface that is elsewhere for a while: its record waits for it, and outlives this daemon.
    if (outcome == Outcome::gone && enforcer_.may_return(subject)) return carried;
    troubles_.erase(subject);
    const auto standing = outcome == Outcome::gone ? state::Standing::gone : state::Standing::back;
    if (const auto done = part(subject, standing); !done)
        tell(Notice::Kind::journal_behind, action, carried, done.error());
    return carried;
}

bool Executor::is_gone(const Subject& subject) const {
    const auto present = enforcer_.present(subject);
    return present && !*present && !enforcer_.may_return(subject); // an Error: nothing is known
}

Result<void> Executor::gone(const Subject& subject) {
    troubles_.erase(subject);
    return part(subject, state::Standing::gone);
}

void Executor::drop_gone(std::size_t most) {
    for (auto left = most; left > 0; --left) {
        const auto at = troubled_ ? troubles_.upper_bound(*troubled_) : troubles_.begin();
        if (at == troubles_.end()) {
            troubled_.reset();
            break;
        }
        troubled_ = at->first;
        const auto present = enforcer_.present(at->first);
        if (present && !*present) troubles_.erase(at);
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
