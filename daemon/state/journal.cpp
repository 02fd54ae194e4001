// SPDX-License-Identifier: Apache-2.0
#include "state/journal.hpp"

#include "host/boot_clock.hpp"
#include "planner/plan.hpp"
#include "state/journal_marks.hpp"
#include "state/record.hpp"

namespace affinityd::state {

using machine::Setting;
using machine::Subject;
using machine::TaskMask;
using planner::UndoRecord;

namespace {

/// Nothing tells whether a virtual interface was removed, or is in another network namespace and comes back.
bool may_be_elsewhere(const Subject& subject) {
    return std::visit(
        [](const auto& what) {
            if constexpr (requires { what.nic; })
                return !what.device.empty() && what.device.find('/') == std::string::npos;
            return false;
        },
        subject);
}

/// What to keep of a subject without a record: a mask of ours is no original.
Setting first_original(const JournalContents& contents, const Subject& subject, const Setting& original) {
    const auto past = contents.past().find(subject);
    const bool is_ours = past && (original == past->record.granted || original == past->record.asked);
    return is_ours ? past->record.original : original;
}

/// The main thread of a thread's process, if that has or had a record.
std::optional<TaskMask> main_thread_of(const JournalContents& contents, const Subject& subject) {
    const auto* task = std::get_if<TaskMask>(&subject);
    if (task == nullptr || task->task.tid == task->pid) return std::nullopt;
    const auto& past = contents.past();
    for (const auto* records : {&contents.held(), &past.kept(), &past.put_back()})
        if (const auto id = records->threads().main_of(task->pid)) return TaskMask{*id, task->pid, {}};
    return std::nullopt;
}

} // namespace

Result<Journal> Journal::open(const std::string& path) {
    Journal journal;
    const auto damaged = journal.writer_.open(path, journal.contents_);
    if (!damaged) return std::unexpected(damaged.error());
    journal.damaged_ = *damaged;
    return journal;
}

Result<void> Journal::remember(const Subject& subject, const Setting& original, const Setting& asked,
                               const std::string& policy, std::uint64_t since, const Setting* seen) {
    const auto known = find(subject);
    const auto& present = seen != nullptr ? *seen : known ? known->granted : original;
    UndoRecord record{known ? known->original : first_original(contents_, subject, original), asked, asked,
                      policy};
    if (present != asked)
        record.before = present;
    else if (known)
        record.before = known->before;
    writer_.granted().note(subject, asked);
    if (auto done = writer_.append(to_line(subject, &record, since), contents_, damaged_); !done) return done;
    contents_.hold(subject, std::move(record), since);
    return {};
}

Result<void> Journal::confirm(const Subject& subject, const Setting& granted) {
    const auto known = find(subject);
    if (!known || (known->granted == granted && !known->before)) return {};
    const auto since = contents_.span_of(subject, *known).since;
    UndoRecord record = *known;
    record.before.reset();
    record.granted = granted;
    if (granted != record.asked) writer_.granted().note(subject, granted);
    if (auto done = writer_.append(to_line(subject, &record, since), contents_, damaged_); !done) return done;
    contents_.hold(subject, std::move(record), since);
    return {};
}

Result<void> Journal::put(const Subject& subject, UndoRecord record) {
    const auto since = contents_.span_of(subject, record).since;
    if (!contains(subject)) { // else its masks are noted, and its original is not to be
        const bool is_its_own = record.asked == record.original; // it was not changed, and may be soon
        record.original = first_original(contents_, subject, record.original);
        if (!is_its_own) writer_.granted().note(subject, record.asked);
    }
    if (auto done = writer_.append(to_line(subject, &record, since), contents_, damaged_); !done) return done;
    contents_.hold(subject, std::move(record), since);
    return {};
}

Result<void> Journal::forget(const Subject& subject) {
    auto record = find(subject);
    if (!record)
        if (auto past = contents_.past().find(subject)) record = std::move(past->record);
    if (!record) return {};
    if (!may_be_elsewhere(subject)) {
        writer_.granted().forget(subject, record->asked);
        if (record->granted != record->asked) writer_.granted().forget(subject, record->granted);
    }
    contents_.erase(subject);
    return writer_.append(to_line(subject, nullptr), contents_, damaged_);
}

Result<void> Journal::settle(const Subject& subject, Parting parting) {
    const auto record = find(subject);
    if (!record) return {};
    const bool is_task = std::holds_alternative<machine::TaskMask>(subject);
    const auto until = is_task && parting == Parting::put_back ? host::ticks_since_boot() : 0;
    contents_.part(subject, *record, parting);
    return writer_.append(to_line(subject, &*record, parting, until), contents_, damaged_);
}

Result<void> Journal::resume(const Subject& subject) {
    auto past = contents_.past().find(subject);
    if (!past || past->parting != Parting::kept) return {};
    if (auto done = writer_.append(to_line(subject, &past->record), contents_, damaged_); !done) return done;
    contents_.hold(subject, std::move(past->record));
    return {};
}

std::optional<Journal::Ours> Journal::recall(const Subject& subject, const Setting& present,
                                             const CpuSet& online) const {
    const bool was_granted = writer_.granted().contains(subject, present);
    if (const auto record = find(subject)) {
        // Programs set again what they have read; whoever sets another subject means it.
        const bool is_wider = std::holds_alternative<machine::TaskMask>(subject) && present.is_cpus() &&
                              present.cpus().contains(record->asked.cpus() & online);
        if (!is_wider) return std::nullopt;
        const auto main = was_granted ? std::nullopt : main_thread_of(contents_, subject);
        const bool is_ours = was_granted || (main && writer_.granted().contains(*main, present));
        return is_ours ? std::optional(Ours{record->original}) : std::nullopt;
    }
    auto past = contents_.past().find(subject);
    // Who has its own back may run everywhere.
    const bool is_past = past && (past->parting == Parting::kept
                                      ? planner::is_still_ours(past->record, present, online) ||
                                            planner::was_widened(subject, past->record, present, online)
                                      : planner::is_as_given(past->record, present, online));
    if (!is_past && !was_granted) return std::nullopt;
    return past ? Ours{std::move(past->record.original)} : Ours{};
}

std::optional<Entry> Journal::find_former(const Subject& subject) const {
    const auto& past = contents_.past();
    for (const auto* records : {&contents_.held(), &past.kept(), &past.put_back()})
        if (const auto* entry = records->queues().find_at_place_of(subject);
            entry != nullptr && entry->subject != subject) {
            auto found = *entry;
            if (auto record = contents_.find(found.subject)) found.record = std::move(*record);
            return found;
        }
    return std::nullopt;
}

Result<void> Journal::rename(const Subject& from, const Subject& to, bool replaces) {
    const auto held = find(from);
    const auto past = held ? std::nullopt : contents_.past().find(from);
    if (!held && !past) return {};
    const auto& record = held ? *held : past->record;
    if (replaces || !contains(to)) {
        for (const auto* setting : {&record.asked, &record.granted})
            writer_.granted().note(to, *setting);
        const auto line = held ? to_line(to, &record) : to_line(to, &record, past->parting);
        if (auto done = writer_.append(line, contents_, damaged_); !done) return done;
        if (held)
            contents_.hold(to, record);
        else
            contents_.part(to, record, past->parting);
    }
    contents_.erase(from);
    return writer_.append(to_line(from, nullptr), contents_, damaged_);
}

Result<void> Journal::mended() {
    if (auto done = writer_.append(std::string(mended_mark).append("\n"), contents_, damaged_); !done)
        return done;
    damaged_ = false;
    return {};
}

std::optional<MaskSource> Journal::find_mask_source(int creator, const CpuSet& mask, const CpuSet& online,
                                                    std::uint64_t born) {
    return contents_.sources().find(creator, mask, online, born);
}

Result<void> Journal::note_given(GivenMask given) {
    auto line = to_line(given);
    if (!contents_.given().add(std::move(given))) return {};
    return writer_.append(line, contents_, damaged_);
}

Result<void> Journal::end_given(std::uint64_t now) {
    const auto& threads = contents_.held().threads();
    const auto ended =
        contents_.given().end([&](const std::string& policy) { return threads.has_policy(policy); }, now);
    for (const auto& policy : ended)
        if (auto done = writer_.append(to_line(EndOfGiven{policy, now}), contents_, damaged_); !done)
            return done;
    return {};
}

Result<void> Journal::forget_given() {
    if (contents_.given().size() == 0) return {};
    contents_.given().clear();
    return writer_.append(std::string(none_given_mark) + '\n', contents_, damaged_);
}

} // namespace affinityd::state
