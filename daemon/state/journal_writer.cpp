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
    const bool was_damaged = contents.replay(present) || is_lost;
    const bool are_masks_lost = !open_granted(path + ".granted");
    if (faults_.empty()) note_missing(path, present);
    std::string lines;
    for (JournalContents::Cursor cursor; const auto line = contents.next(cursor);) {
        lines += line->text;
        if (!line->entry) continue;
        // The file may be older than that of the granted masks, or this one may be lost. If the disk is full,
        // the journal still has them.
        for (const auto* setting : {&line->entry->record.asked, &line->entry->record.granted})
            if (!granted_.note(line->entry->subject, *setting)) break;
    }
    const bool is_damaged = was_damaged || are_masks_lost;
    file_ = JournalFile(path);
    // Rewritten at once: a torn last line would otherwise run into the next record.
    if (!file_.replace(lines + marked(is_damaged)))
        if (auto done = file_.use_as_it_is(present); !done) return std::unexpected(done.error());
    return is_damaged;
}

/// The journal itself is of more use, so that nothing here keeps the daemon from its start. False: what the
/// file knew is lost.
bool JournalWriter::open_granted(const std::string& path) {
    std::optional<Error> fault;
    auto granted = GrantedMasks::open(path, fault);
    if (!granted) fault = std::move(granted.error());
    if (granted) granted_ = std::move(*granted);
    if (!fault) return true;
    faults_.push_back(std::move(*fault));
    return granted_.size() > 0; // only its first lines were damaged
}

/// The masks that were granted are known, and what is restored to whom is not.
void JournalWriter::note_missing(const std::string& path, std::string_view present) {
    if (!present.empty() || granted_.size() == 0) return;
    faults_.push_back(
        {fmt::format("it is missing or empty, although {} masks were granted since boot: what still has one "
                     "of these gets the kernel's default when it is put back",
                     granted_.size()),
         path});
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
    granted_.begin_rewrite();
    rewritten_ = {};
    are_records_copied_ = false;
}

/// What was copied before it changed is overtaken by the line of the change, which goes to both files.
void JournalWriter::rewrite_some(const JournalContents& contents, bool is_damaged) {
    std::string text;
    for (std::size_t i = 0; i < compacted_at_a_time && !are_records_copied_; ++i) {
        const auto line = contents.next(rewritten_);
        are_records_copied_ = !line;
        text += line ? line->text : marked(is_damaged);
    }
    if (!text.empty()) file_.add_to_rewrite(text);
    if (!granted_.rewrite_some() || !are_records_copied_) return;
    granted_.finish_rewrite();
    file_.finish_rewrite();
}

bool JournalWriter::look_after_files(const JournalContents& contents, bool is_damaged,
                                     const std::function<bool()>& out_of_time) {
    const auto are_in_place = [this] { return file_.is_in_place() && granted_.is_in_place(); };
    if (!file_.is_rewriting()) {
        trouble_.reset();
        if (are_in_place()) return true;
        if (auto there = renew_folder(); !there) trouble_ = std::move(there.error());
        if (trouble_) return true;
        begin_rewrite();
    }
    while (file_.is_rewriting()) {
        rewrite_some(contents, is_damaged);
        if (file_.is_rewriting() && out_of_time()) return false;
    }
    if (!are_in_place())
        trouble_ =
            Error{"it or the file of granted masks is gone, and a new one cannot be written", file_.path()};
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
