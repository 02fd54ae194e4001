// SPDX-License-Identifier: Apache-2.0
#include "state/journal.hpp"

#include "host/file.hpp"
#include "state/record.hpp"

namespace affinityd::state {

namespace {

using machine::Setting;
using machine::Subject;
using machine::TaskMask;
using planner::UndoRecord;

constexpr std::size_t fewest_lines_to_compact = 4096;
constexpr std::size_t compacted_at_a_time = 32; // with each line that is appended
constexpr std::size_t largest_journal = 256U << 20;
// These are no records, so that a reader who does not know them assumes damage, which is on the safe side.
constexpr std::string_view damage_mark = "lines were lost";
constexpr std::string_view mended_mark = "lost lines are accounted for";

std::string line_of(std::string_view mark) { return std::string(mark) + '\n'; }

std::string all_lines(const Journal& journal) {
    std::string text;
    Journal::Cursor cursor;
    while (const auto entry = journal.next(cursor))
        text += to_line(entry->subject, &entry->record);
    return journal.damaged() ? text + line_of(damage_mark) : text;
}

/// The record of a thread of process `pid` has changed, and with it the masks that its children may inherit.
void swap_sources(MaskSources& sources, int pid, const UndoRecord* before, const UndoRecord* after,
                  std::uint64_t since = 0) {
    const auto each_mask = [](const UndoRecord& record, const auto& use) {
        use(record.granted.cpus());
        if (record.asked != record.granted) use(record.asked.cpus());
    };
    // The new ones first, so that a mask in both is not taken for a former one.
    if (after != nullptr)
        each_mask(*after, [&](const CpuSet& mask) {
            sources.add(pid, mask, {after->original.cpus(), after->policy}, since);
        });
    if (before != nullptr) each_mask(*before, [&](const CpuSet& mask) { sources.remove(pid, mask); });
}

} // namespace

Result<Journal> Journal::open(const std::string& path) {
    Journal journal(path);
    if (path.empty()) return journal;
    const auto text = host::read_file(path, largest_journal);
    if (!text) return std::unexpected(text.error());
    const std::string_view present = *text ? std::string_view(**text) : std::string_view();
    journal.replay(present);
    // Rewritten at once: a torn last line would otherwise run into the next record.
    if (!journal.file_.replace(all_lines(journal)))
        if (auto done = journal.file_.use_as_it_is(present); !done) return std::unexpected(done.error());
    return journal;
}

void Journal::replay(std::string_view text) {
    while (!text.empty()) {
        const auto end = text.find('\n');
        const bool is_whole = end != std::string_view::npos;
        const auto line = text.substr(0, end);
        text.remove_prefix(is_whole ? end + 1 : text.size());
        auto record = is_whole ? parse_line(line) : std::nullopt;
        if (!record)
            damaged_ = !is_whole || line != mended_mark;
        else if (record->undo)
            put(record->subject, std::move(*record->undo), find(record->subject));
        else
            erase(record->subject);
    }
}

void Journal::put(const Subject& subject, UndoRecord record, const std::optional<UndoRecord>& before,
                  std::uint64_t since) {
    const auto* task = std::get_if<TaskMask>(&subject);
    if (task == nullptr) {
        queues_.put(subject, std::move(record));
        return;
    }
    const int pid = before ? threads_.process_of(task->task).value_or(task->pid) : task->pid;
    threads_.put(*task, record);
    swap_sources(sources_, pid, before ? &*before : nullptr, &record, since);
}

void Journal::erase(const Subject& subject) {
    const auto* task = std::get_if<TaskMask>(&subject);
    if (task == nullptr) {
        queues_.erase(subject);
        return;
    }
    const auto before = threads_.find(task->task);
    if (!before) return;
    swap_sources(sources_, *threads_.process_of(task->task), &*before, nullptr);
    threads_.erase(task->task);
}

std::optional<UndoRecord> Journal::find(const Subject& subject) const {
    if (const auto* task = std::get_if<TaskMask>(&subject)) return threads_.find(task->task);
    const auto* record = queues_.find(subject);
    return record == nullptr ? std::nullopt : std::optional(*record);
}

bool Journal::contains(const Subject& subject) const {
    const auto* task = std::get_if<TaskMask>(&subject);
    return task != nullptr ? threads_.contains(task->task) : queues_.find(subject) != nullptr;
}

Result<void> Journal::remember(const Subject& subject, const Setting& original, const Setting& asked,
                               const std::string& policy, std::uint64_t since) {
    const auto known = find(subject);
    UndoRecord record{known ? known->original : original, asked, asked, policy};
    if (auto done = append(to_line(subject, &record)); !done) return done;
    put(subject, std::move(record), known, since);
    return {};
}

Result<void> Journal::confirm(const Subject& subject, const Setting& granted) {
    const auto known = find(subject);
    if (!known || known->granted == granted) return {};
    UndoRecord record = *known;
    record.granted = granted;
    if (auto done = append(to_line(subject, &record)); !done) return done;
    put(subject, std::move(record), known);
    return {};
}

Result<void> Journal::forget(const Subject& subject) {
    if (!contains(subject)) return {};
    erase(subject);
    return append(to_line(subject, nullptr));
}

Result<void> Journal::settle(const Subject& subject) {
    const auto* task = std::get_if<TaskMask>(&subject);
    if (task != nullptr && contains(subject)) settled_.add(task->task);
    return forget(subject);
}

Result<void> Journal::mended() {
    if (auto done = append(line_of(mended_mark)); !done) return done;
    damaged_ = false;
    return {};
}

std::optional<Entry> Journal::next(Cursor& cursor, std::optional<std::string_view> policy) const {
    while (cursor.thread < threads_.slots()) {
        const auto at = cursor.thread++;
        if (threads_.is_used(at) && (!policy || threads_.policy(at) == *policy)) return threads_.entry(at);
    }
    while (cursor.queue < queues_.slots()) {
        const auto* entry = queues_.entry(cursor.queue++);
        if (entry != nullptr && (!policy || entry->record.policy == *policy)) return *entry;
    }
    return std::nullopt;
}

std::optional<int> Journal::next_process(Cursor& cursor) const {
    while (cursor.thread < threads_.slots())
        if (const auto pid = threads_.first_of_process(cursor.thread++)) return pid;
    return std::nullopt;
}

std::vector<Entry> Journal::queues(std::optional<std::string_view> device) const {
    return queues_.all(device);
}

std::optional<MaskSource> Journal::find_mask_source(int creator, const CpuSet& mask, const CpuSet& online,
                                                    std::uint64_t born) {
    return sources_.find(creator, mask, online, born);
}

bool Journal::is_mask_source(int pid, int parent) const {
    const auto is_one = [&](int process) {
        return threads_.has_process(process) || sources_.has_former(process);
    };
    return is_one(pid) || is_one(parent);
}

Result<void> Journal::append(const std::string& line) {
    go_on_compacting();
    return file_.append(line);
}

/// What was copied before it changed is overtaken by the line of the change, which goes to both files.
void Journal::go_on_compacting() {
    if (!file_.is_rewriting()) {
        if (file_.lines() < fewest_lines_to_compact || file_.lines() < 4 * size()) return;
        file_.begin_rewrite();
        compacted_ = {};
    }
    std::string text;
    for (std::size_t i = 0; i < compacted_at_a_time; ++i) {
        const auto entry = next(compacted_);
        if (!entry) {
            if (damaged_) text += line_of(damage_mark);
            file_.add_to_rewrite(text);
            return file_.finish_rewrite();
        }
        text += to_line(entry->subject, &entry->record);
    }
    file_.add_to_rewrite(text);
}

} // namespace affinityd::state
