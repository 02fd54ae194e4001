// SPDX-License-Identifier: Apache-2.0
#include "state/journal_writer.hpp"

#include "host/file.hpp"
#include "state/journal_marks.hpp"

namespace affinityd::state {

namespace {

constexpr std::size_t fewest_lines_to_compact = 4096;
constexpr std::size_t compacted_at_a_time = 32; // with each line that is appended
constexpr std::size_t largest_journal = 256U << 20;

std::string marked(bool is_damaged) { return is_damaged ? std::string(damage_mark) + '\n' : ""; }

} // namespace

Result<bool> JournalWriter::open(const std::string& path, JournalContents& contents) {
    if (path.empty()) return false;
    const auto text = host::read_file(path, largest_journal);
    if (!text) return std::unexpected(text.error());
    const std::string_view present = *text ? std::string_view(**text) : std::string_view();
    const bool was_damaged = contents.replay(present);
    const bool are_masks_lost = !open_granted(path + ".granted");
    std::string lines, line;
    for (JournalContents::Cursor cursor; const auto found = contents.next(cursor, line);) {
        lines += line;
        // The file may be older than that of the granted masks, or this one may be lost. If the disk is full,
        // the journal still has them.
        for (const auto* setting : {&found->entry.record.asked, &found->entry.record.granted})
            if (!granted_.note(found->entry.subject, *setting)) break;
    }
    const bool is_damaged = was_damaged || are_masks_lost;
    file_ = JournalFile(path);
    // Rewritten at once: a torn last line would otherwise run into the next record.
    if (!file_.replace(lines + marked(is_damaged)))
        if (auto done = file_.use_as_it_is(present); !done) return std::unexpected(done.error());
    return is_damaged;
}

/// What is no file of ours is put aside: the journal itself is of more use. False: what it knew is lost.
bool JournalWriter::open_granted(const std::string& path) {
    auto granted = GrantedMasks::open(path);
    const bool is_readable = granted.has_value();
    if (!is_readable && ::rename(path.c_str(), (path + ".unreadable").c_str()) == 0)
        granted = GrantedMasks::open(path);
    if (granted) granted_ = std::move(*granted);
    return is_readable;
}

Result<void> JournalWriter::append(const std::string& line, const JournalContents& contents,
                                   bool is_damaged) {
    const auto lines = file_.lines();
    if (!file_.is_rewriting() && lines >= fewest_lines_to_compact && lines >= 4 * contents.size())
        begin_rewrite();
    if (file_.is_rewriting()) rewrite_some(contents, is_damaged);
    return file_.append(line);
}

void JournalWriter::begin_rewrite() {
    file_.begin_rewrite();
    granted_.begin_rewrite();
    rewritten_ = {};
    are_records_copied_ = false;
}

/// What was copied before it changed is overtaken by the line of the change, which goes to both files.
void JournalWriter::rewrite_some(const JournalContents& contents, bool is_damaged) {
    std::string text, line;
    for (std::size_t i = 0; i < compacted_at_a_time && !are_records_copied_; ++i) {
        are_records_copied_ = !contents.next(rewritten_, line);
        text += are_records_copied_ ? marked(is_damaged) : line;
    }
    if (!text.empty()) file_.add_to_rewrite(text);
    if (!granted_.rewrite_some() || !are_records_copied_) return;
    granted_.finish_rewrite();
    file_.finish_rewrite();
}

bool JournalWriter::look_after_files(const JournalContents& contents, bool is_damaged,
                                     const std::function<bool()>& out_of_time) {
    if (!file_.is_rewriting()) {
        if (file_.is_in_place() && granted_.is_in_place()) return true;
        begin_rewrite();
    }
    while (file_.is_rewriting()) {
        rewrite_some(contents, is_damaged);
        if (file_.is_rewriting() && out_of_time()) return false;
    }
    return true;
}

} // namespace affinityd::state
