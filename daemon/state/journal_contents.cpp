// SPDX-License-Identifier: Apache-2.0
#include "state/journal_contents.hpp"

#include "state/journal_marks.hpp"

#include <utility>

namespace affinityd::state {

namespace {

using machine::Subject;
using machine::TaskMask;
using planner::UndoRecord;

/// The masks of a task's record that its children may have inherited from us.
template <class Use>
void each_mask(const UndoRecord& record, const Use& use) {
    use(record.granted.cpus());
    if (record.asked != record.granted) use(record.asked.cpus());
    if (record.before && record.before != record.granted && record.before != record.asked &&
        record.before != record.original)
        use(record.before->cpus());
}

void add_sources(MaskSources& sources, int pid, const UndoRecord& record, bool is_kept,
                 std::uint64_t since = 0) {
    each_mask(record, [&](const CpuSet& mask) {
        sources.add(pid, mask, {record.original.cpus(), record.policy, is_kept}, since);
    });
}

void remove_sources(MaskSources& sources, int pid, const UndoRecord& record) {
    each_mask(record, [&](const CpuSet& mask) { sources.remove(pid, mask); });
}

} // namespace

std::optional<UndoRecord> JournalContents::find(const Subject& subject) const {
    auto record = held_.find(subject);
    if (before_.empty() || !record) return record;
    if (const auto before = before_.find(subject); before != before_.end()) record->before = before->second;
    return record;
}

// New sources come before old ones go, so that a mask in both is not taken for a former one.

void JournalContents::hold(const Subject& subject, UndoRecord record, std::uint64_t since) {
    if (const auto* task = std::get_if<TaskMask>(&subject)) {
        const int pid = held_.threads().process_of(task->task).value_or(task->pid);
        const auto known = find(subject);
        add_sources(sources_, pid, record, false, since);
        if (known) remove_sources(sources_, pid, *known);
    }
    erase_past(subject);
    if (record.before)
        before_.insert_or_assign(subject, *std::exchange(record.before, std::nullopt));
    else if (!before_.empty())
        before_.erase(subject);
    held_.put(subject, std::move(record));
}

void JournalContents::part(const Subject& subject, const UndoRecord& record, Parting parting,
                           std::uint64_t until) {
    const auto* task = std::get_if<TaskMask>(&subject);
    erase_past(subject);
    if (task != nullptr && parting == Parting::kept) {
        given_.forget(record.policy); // what its children have is theirs, too
        const int pid = held_.threads().process_of(task->task).value_or(task->pid);
        auto last = record;
        last.before.reset();
        add_sources(sources_, pid, last, true);
    }
    erase_held(subject);
    // The file may not say any more that it had a record.
    if (task != nullptr && parting == Parting::put_back && until > 0)
        each_mask(record, [&](const CpuSet& mask) {
            sources_.add_former(task->pid, mask, {record.original.cpus(), record.policy}, until);
        });
    auto last = record;
    last.before.reset();
    if (const auto surplus = past_.put(subject, std::move(last), parting)) erase_past(*surplus);
}

bool JournalContents::is_mask_source(int pid, int parent) const {
    if (held_.threads().size() == 0 && sources_.former() == 0) return false;
    const auto is_one = [&](int process) {
        return held_.threads().has_process(process) || sources_.has_former(process);
    };
    return is_one(pid) || is_one(parent);
}

void JournalContents::erase(const Subject& subject) {
    erase_past(subject);
    erase_held(subject);
}

void JournalContents::erase_held(const Subject& subject) {
    if (const auto* task = std::get_if<TaskMask>(&subject))
        if (const auto known = find(subject))
            remove_sources(sources_, *held_.threads().process_of(task->task), *known);
    held_.erase(subject);
    if (!before_.empty()) before_.erase(subject);
}

void JournalContents::erase_past(const Subject& subject) {
    if (past_.size() == 0) return;
    if (const auto* task = std::get_if<TaskMask>(&subject))
        if (const auto before = past_.kept().find(subject))
            remove_sources(sources_, *past_.kept().threads().process_of(task->task), *before);
    past_.erase(subject);
}

bool JournalContents::replay(std::string_view text) {
    bool is_damaged = false;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const bool is_whole = end != std::string_view::npos;
        const auto line = text.substr(0, end);
        text.remove_prefix(is_whole ? end + 1 : text.size());
        if (is_whole && is_header_line(line)) continue;
        auto record = is_whole ? parse_line(line) : std::nullopt;
        if (auto given = record || !is_whole ? std::nullopt : parse_given(line))
            given_.add(std::move(*given));
        else if (const auto over = record || !is_whole ? std::nullopt : parse_end_of_given(line))
            given_.end(over->policy, over->until);
        else if (is_whole && line == none_given_mark)
            given_.clear();
        else if (!record)
            is_damaged = !is_whole || line != mended_mark;
        else if (record->undo)
            hold(record->subject, std::move(*record->undo), record->since_or_until);
        else if (record->past)
            part(record->subject, record->past->record, record->past->parting, record->since_or_until);
        else
            erase(record->subject);
    }
    return is_damaged;
}

MaskSources::Span JournalContents::span_of(const Subject& subject, const UndoRecord& record) const {
    const auto* task = std::get_if<TaskMask>(&subject);
    return task == nullptr ? MaskSources::Span{} : sources_.span_of(task->pid, record.granted.cpus());
}

// Masks that were given come last: one that was kept makes those of its policy forgotten.
std::optional<JournalContents::Line> JournalContents::next(Cursor& cursor) const {
    if (auto entry = held_.next(cursor.held)) {
        entry->record = *find(entry->subject);
        auto text = to_line(entry->subject, &entry->record, span_of(entry->subject, entry->record).since);
        return Line{std::move(text), std::move(*entry)};
    }
    if (auto found = past_.next(cursor.past)) {
        auto text = to_line(found->entry.subject, &found->entry.record, found->parting,
                            span_of(found->entry.subject, found->entry.record).until);
        return Line{std::move(text), std::move(found->entry)};
    }
    // Where some were forgotten, others have moved: all come once more, and who reads them takes each once.
    if (std::exchange(cursor.shifts, given_.shifts()) != given_.shifts()) cursor.given = 0;
    if (cursor.given < given_.size()) return Line{to_line(given_[cursor.given++])};
    return std::nullopt;
}

} // namespace affinityd::state
