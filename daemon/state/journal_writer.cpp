// SPDX-License-Identifier: Apache-2.0
#include "state/journal_writer.hpp"

#include "host/file.hpp"
#include "host/ownership.hpp"
#include "state/journal_marks.hpp"
#include "state/set_aside.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::state {

namespace {

constexpr std::size_t fewest_lines_to_compact = 4096;
constexpr std::size_t compacted_at_a_time = 32; // with each line that is appended
constexpr std::size_t largest_journal = 256U << 20;

std::string marked(bool is_damaged) {
    std::string line;
    if (is_damaged) line.append(damage_mark).push_back('\n');
    return line;
}

} // namespace

Result<bool> JournalWriter::open(const std::string& path, JournalContents& contents) {
    if (path.empty()) return false;
    auto file = read_or_set_aside(path, largest_journal);
    if (!file) return std::unexpected(file.error());
    const bool is_lost = file->fault.has_value();
    if (is_lost) faults_.push_back(std::move(*file->fault));
    const auto boot = boot_of(file->text.value_or(""));
    if (boot == FileBoot::damaged) faults_.push_back(header_damage(path));
    if (boot == FileBoot::another) {
        faults_.push_back(
            {"it is of an earlier boot: nothing that it tells of is in force, so it was dropped", path});
        file->text.reset();
        ::unlink(path.c_str()); // also where the disk is full
    }
    const auto present = std::exchange(file->text, {}).value_or("");
    const bool is_damaged = contents.replay(present) || is_lost;
    std::string lines;
    for (JournalContents::Cursor cursor; const auto line = contents.next(cursor);) {
        lines += line->text;
        if (!line->entry) continue;
        granted_.note(line->entry->subject, line->entry->record.asked);
        granted_.note(line->entry->subject, line->entry->record.granted);
    }
    file_ = JournalFile(path);
    // Rewritten at once: a torn last line would otherwise run into the next record.
    if (!file_.replace(lines + marked(is_damaged)))
        if (auto done = file_.use_as_it_is(present); !done) return std::unexpected(done.error());
    return is_damaged;
}

Result<void> JournalWriter::append(const std::string& line, const JournalContents& contents,
                                   bool is_damaged) {
    if (trouble_) return std::unexpected(*trouble_);
    const auto lines = file_.lines();
    const bool is_long = lines >= fewest_lines_to_compact && lines >= 4 * contents.size();
    if (!file_.is_rewriting() && (is_long || file_.is_bloated())) begin_rewrite();
    if (file_.is_rewriting()) rewrite_some(contents, is_damaged);
    return file_.append(line);
}

void JournalWriter::begin_rewrite() {
    file_.begin_rewrite();
    rewritten_ = {};
}

/// What was copied before it changed is overtaken by the line of the change, which goes to both files.
void JournalWriter::rewrite_some(const JournalContents& contents, bool is_damaged) {
    std::string text;
    for (std::size_t i = 0; i < compacted_at_a_time; ++i) {
        const auto line = contents.next(rewritten_);
        text += line ? line->text : marked(is_damaged);
        if (line) continue;
        file_.add_to_rewrite(text);
        return file_.finish_rewrite();
    }
    file_.add_to_rewrite(text);
}

bool JournalWriter::look_after_files(const JournalContents& contents, bool is_damaged,
                                     const std::function<bool()>& out_of_time) {
    if (!file_.is_rewriting()) {
        trouble_.reset();
        if (file_.is_in_place()) return true;
        if (auto there = renew_folder(); !there) trouble_ = std::move(there.error());
        if (trouble_) return true;
        begin_rewrite();
    }
    while (file_.is_rewriting()) {
        rewrite_some(contents, is_damaged);
        if (file_.is_rewriting() && out_of_time()) return false;
    }
    if (!file_.is_in_place()) trouble_ = Error{"it is gone, and a new one cannot be written", file_.path()};
    return true;
}

std::vector<Error> JournalWriter::faults() const {
    auto faults = faults_;
    if (trouble_)
        faults.push_back({trouble_->message + "; nothing is changed until it can be written",
                          trouble_->subject, trouble_->code});
    return faults;
}

/// Nothing is written into what somebody else has put in its place.
Result<void> JournalWriter::renew_folder() {
    const auto folder = std::filesystem::path(file_.path()).parent_path();
    std::error_code code;
    const bool is_gone = !std::filesystem::exists(folder, code);
    if (auto made = host::make_directories(folder); !made) return made;
    if (auto checked = host::check_ownership(folder); !checked) return checked;
    const bool is_said = std::ranges::find(faults_, folder.string(), &Error::subject) != faults_.end();
    if (is_gone && !is_said)
        faults_.push_back({"the folder was removed while the daemon ran, and made again: the control socket "
                           "and the lock in it come back when the daemon is restarted",
                           folder});
    return {};
}

} // namespace affinityd::state
