// SPDX-License-Identifier: Apache-2.0
#include "state/journal.hpp"

#include "host/file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::state {

using machine::Subject;
using machine::TaskMask;
using planner::UndoPointer;
using planner::UndoRecord;

namespace {

constexpr std::size_t most_gone = 4096;
constexpr std::ptrdiff_t most_earlier = 8;
constexpr std::size_t rewritten_at_a_time = 32;
constexpr std::size_t largest_journal = 256U << 20;
// Lines that are no records, so that a reader who does not know them assumes damage, which is on the safe
// side.
constexpr std::string_view damage_mark = "lines were lost\n";
constexpr std::string_view mended_mark = "lost lines are accounted for\n";

bool is_task(const Subject& subject) { return std::holds_alternative<TaskMask>(subject); }

Subject first_of(int pid) { return TaskMask{{0, 0}, pid, {}}; }

/// Tasks come first.
int process_of(const Subject& subject) {
    const auto* task = std::get_if<TaskMask>(&subject);
    return task == nullptr ? 0 : task->pid;
}

std::string_view device_of(const Subject& subject) {
    return std::visit(
        [](const auto& what) -> std::string_view {
            if constexpr (requires { what.device; }) return what.device;
            return {};
        },
        subject);
}

/// Where it is now; "": it is where it was.
std::string set_aside(const std::string& path) {
    constexpr int most = 9;
    for (int i = 1; i <= most; ++i) {
        auto place = path + ".unreadable" + (i == 1 ? "" : "-" + std::to_string(i));
        if (::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, place.c_str(), RENAME_NOREPLACE) == 0) return place;
    }
    return {};
}

/// Masks that the task had from us before it has those of `now`.
std::vector<CpuSet> earlier_of(const Terms& before, const UndoRecord& now) {
    auto masks = masks_of(before);
    for (const auto& known : {now.original, now.asked, now.granted, now.before.value_or(now.asked)})
        std::erase(masks, known.cpus());
    if (masks.size() > most_earlier) masks.erase(masks.begin(), masks.end() - most_earlier);
    return masks;
}

template <class Map>
auto after(Map& map, const Journal::Cursor& cursor) {
    return cursor ? map.upper_bound(*cursor) : map.begin();
}

} // namespace

Result<Journal> Journal::open(const std::string& path) {
    Journal journal;
    journal.path_ = path;
    if (path.empty()) return journal;
    bool is_lost = false;
    auto text = journal.read(is_lost);
    if (!text) return std::unexpected(std::move(text.error()));
    journal.damaged_ = journal.replay(*text) || is_lost;
    if (auto done = journal.write_whole(*text); !done) return std::unexpected(std::move(done.error()));
    return journal;
}

/// Puts aside what cannot be read in the file's place (a folder, a pipe, a link, a file that is too large),
/// so that the daemon can begin a new one.
Result<std::string> Journal::read(bool& is_lost) {
    auto text = host::read_file(path_, largest_journal, host::Links::refused);
    if (!text) {
        auto& fault = text.error();
        const bool is_passing = fault.code == EMFILE || fault.code == ENFILE || fault.code == ENOMEM;
        const auto place = is_passing ? std::string() : set_aside(path_);
        if (place.empty()) return std::unexpected(std::move(fault));
        fault.message += "; put aside as " + place + ", what it said is not known any more";
        faults_.push_back(std::move(fault));
        is_lost = true;
        return {};
    }
    auto whole = std::move(*text).value_or("");
    const auto boot = boot_of(whole);
    if (boot == FileBoot::damaged)
        faults_.push_back(
            {"its first line, which names the boot, is damaged: the lines after it were used", path_});
    if (boot != FileBoot::another) return whole;
    faults_.push_back(
        {"it is of an earlier boot: nothing that it tells of is in force, so it was dropped", path_});
    ::unlink(path_.c_str()); // also where the disk is full
    return {};
}

/// At once, as a torn last line would otherwise run into the next record. Where the disk is full, the file
/// stays in use, which holds `old`.
Result<void> Journal::write_whole(std::string_view old) {
    auto whole = header();
    for (const auto* records : {&held_, &past_})
        for (const auto& record : *records)
            whole += line_of(record);
    if (damaged_) whole += damage_mark;
    const bool is_written = host::replace_file(path_, whole, 0600).has_value();
    file_.reset(
        ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (!file_) return fail("cannot open the undo journal", path_, errno);
    is_torn_ = !is_written && !old.empty() && !old.ends_with('\n');
    bytes_ = whole_bytes_ = is_written ? whole.size() : old.size();
    return {};
}

/// True: lines are lost.
bool Journal::replay(std::string_view text) {
    bool is_damaged = false;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const bool is_whole = end != std::string_view::npos;
        const auto line = text.substr(0, end);
        text.remove_prefix(is_whole ? end + 1 : text.size());
        if (is_whole && is_header(line)) continue;
        auto record = is_whole ? parse_line(line) : std::nullopt;
        if (record)
            take_line(std::move(*record));
        else
            is_damaged = !is_whole || line != mended_mark.substr(0, mended_mark.size() - 1);
    }
    return is_damaged;
}

void Journal::take_line(Line line) {
    auto& [subject, record] = line;
    if (record.terms) {
        record.terms = share(*record.terms, to_text(*record.terms), is_task(subject));
        use(subject, std::move(record));
    } else {
        held_.erase(subject);
        past_.erase(subject);
    }
}

/// From now on the subject has this record.
void Journal::use(const Subject& subject, Record record) {
    held_.erase(subject); // with the name that it had
    past_.erase(subject);
    const auto standing = record.standing;
    (standing == Standing::held ? held_ : past_).emplace(subject, std::move(record));
    if (standing != Standing::gone) return;
    gone_.push_back(subject);
    if (gone_.size() <= most_gone) return;
    if (const auto* oldest = find_past(gone_.front());
        oldest != nullptr && oldest->standing == Standing::gone)
        past_.erase(gone_.front());
    gone_.pop_front();
}

std::shared_ptr<const Terms> Journal::share(Terms terms, std::string text, bool is_of_task) {
    const auto add_masks = [this](const Terms& terms) {
        for (auto& mask : masks_of(terms))
            masks_.insert(std::move(mask));
    };
    if (terms_.size() >= most_terms_) {
        std::erase_if(terms_, [](const auto& one) { return one.second.expired(); });
        most_terms_ = std::max<std::size_t>(64, 2 * terms_.size());
        masks_.clear();
        for (const auto* records : {&held_, &past_})
            for (auto at = records->begin(); at != records->end() && is_task(at->first); ++at)
                add_masks(*at->second.terms);
    }
    auto& known = terms_[std::move(text)];
    auto shared = known.lock();
    if (!shared) known = shared = std::make_shared<const Terms>(std::move(terms));
    if (is_of_task) add_masks(*shared);
    return shared;
}

std::string Journal::line_of(const Records::value_type& record) const {
    return to_line(record.first, record.second, to_text(*record.second.terms));
}

UndoPointer Journal::find(const Subject& subject) const {
    const auto found = held_.find(subject);
    return found == held_.end() ? nullptr : found->second.undo();
}

std::optional<Entry> Journal::find_entry(const Subject& subject) const {
    const auto found = held_.find(subject);
    return found == held_.end() ? std::nullopt : std::optional(Entry{found->first, found->second.undo()});
}

const Record* Journal::find_past(const Subject& subject) const {
    if (past_.empty()) return nullptr;
    const auto found = past_.find(subject);
    return found == past_.end() ? nullptr : &found->second;
}

std::optional<Entry> Journal::find_at_number(const Subject& subject) const {
    const auto* irq = std::get_if<machine::IrqMask>(&subject);
    if (irq == nullptr || irq->device.empty()) return std::nullopt;
    for (auto at = held_.lower_bound(machine::IrqMask{.device = irq->device}); at != held_.end(); ++at) {
        const auto* other = std::get_if<machine::IrqMask>(&at->first);
        if (other == nullptr || other->device != irq->device) break;
        if (other->irq == irq->irq) return Entry{at->first, at->second.undo()};
    }
    return std::nullopt;
}

Result<UndoPointer> Journal::put(const Subject& subject, UndoRecord undo, const Descent* descent,
                                 std::uint64_t since) {
    const auto held = held_.find(subject);
    const auto* known = held != held_.end() ? &held->second : find_past(subject);
    Record record;
    record.since = known != nullptr && known->since > 0 ? known->since : since;
    Terms terms{std::move(undo), {}};
    if (known != nullptr && is_task(subject)) terms.earlier = earlier_of(*known->terms, terms.undo);
    if (descent != nullptr)
        terms.descent = *descent;
    else if (known != nullptr)
        terms.descent = known->terms->descent;
    auto text = to_text(terms);
    const auto tail = text;
    record.terms = share(std::move(terms), std::move(text), is_task(subject));
    if (auto done = append(to_line(subject, record, tail)); !done) return std::unexpected(done.error());
    const auto shared = record.undo();
    use(subject, std::move(record));
    return shared;
}

Result<void> Journal::part(const Subject& subject, Standing standing, std::uint64_t until) {
    const auto held = held_.find(subject);
    const auto* known = held != held_.end() ? &held->second : find_past(subject);
    if (known == nullptr) return {};
    if (!is_task(subject) && standing != Standing::kept) return drop(subject);
    Record record = *known;
    record.standing = standing;
    if (record.until == 0) record.until = until;
    const auto line = to_line(subject, record, to_text(*record.terms));
    use(subject, std::move(record));
    return append(line);
}

Result<void> Journal::drop(const Subject& subject) {
    if (held_.erase(subject) + past_.erase(subject) == 0) return {};
    return append(to_line(subject, {}, {}));
}

Result<void> Journal::rename(const Subject& from, const Subject& to) {
    const auto found = held_.find(from);
    if (found == held_.end()) return {};
    Record record = found->second;
    if (auto done = append(to_line(to, record, to_text(*record.terms))); !done) return done;
    use(to, std::move(record));
    return drop(from);
}

std::optional<Entry> Journal::next(Cursor& cursor) const {
    const auto at = after(held_, cursor);
    if (at == held_.end()) return std::nullopt;
    cursor = at->first;
    return Entry{at->first, at->second.undo()};
}

const Journal::Records::value_type* Journal::next_past(Cursor& cursor) const {
    const auto at = after(past_, cursor);
    if (at == past_.end()) return nullptr;
    cursor = at->first;
    return &*at;
}

std::vector<Entry> Journal::queues(std::optional<std::string_view> device) const {
    std::vector<Entry> found;
    for (auto at =
             std::find_if(held_.rbegin(), held_.rend(), [](const auto& one) { return is_task(one.first); })
                 .base();
         at != held_.end(); ++at)
        if (!device || device_of(at->first) == *device) found.push_back({at->first, at->second.undo()});
    return found;
}

std::vector<TaskId> Journal::threads(int pid) const {
    std::vector<TaskId> threads;
    for (auto at = held_.lower_bound(first_of(pid)); at != held_.end() && process_of(at->first) == pid; ++at)
        threads.push_back(std::get<TaskMask>(at->first).task);
    return threads;
}

int Journal::next_process(int pid) const {
    const auto at = held_.lower_bound(first_of(pid + 1));
    return at == held_.end() ? 0 : process_of(at->first);
}

bool Journal::has_process(int pid) const {
    return std::ranges::any_of(std::array{&held_, &past_}, [&](const auto* records) {
        const auto at = records->lower_bound(first_of(pid));
        return at != records->end() && process_of(at->first) == pid;
    });
}

bool Journal::is_mask_of_ours(const CpuSet& mask, const CpuSet& online) const {
    const auto wanted = mask & online;
    return std::ranges::any_of(masks_, [&](const CpuSet& ours) { return (ours & online) == wanted; });
}

const Record* Journal::explain(int creator, const CpuSet& mask, const CpuSet& online,
                               std::uint64_t born) const {
    if (!has_process(creator) || !is_mask_of_ours(mask, online)) return nullptr;
    for (const auto* records : {&held_, &past_})
        for (auto at = records->lower_bound(first_of(creator));
             at != records->end() && process_of(at->first) == creator; ++at)
            if (at->second.explains(mask, online, born)) return &at->second;
    return nullptr;
}

const Record* Journal::explain(const Descent& descent, const CpuSet& mask, const CpuSet& online,
                               std::uint64_t born) const {
    const Record *found = nullptr, *own = nullptr;
    const auto is_newer = [](const Record& one, const Record* other) {
        return other == nullptr || one.until > other->until; // 0: it has not ended
    };
    for (const auto* records : {&past_, &held_})
        for (auto at = records->begin(); at != records->end() && is_task(at->first); ++at) {
            const auto& record = at->second;
            if (!descent.may_be_of(record.terms->descent)) continue;
            const bool has_ended = record.standing == Standing::gone;
            if (record.explains(mask, online, born) && (found == nullptr || has_ended) &&
                is_newer(record, found))
                found = &record;
            if (has_ended && born <= record.until && is_newer(record, own) &&
                record.terms->undo.original == machine::Setting(mask))
                own = &record;
        }
    return own != nullptr && (found == nullptr || found->until <= own->until) ? nullptr : found;
}

void Journal::drop_gone(std::uint64_t until) {
    for (; !gone_.empty(); gone_.pop_front()) {
        const auto found = past_.find(gone_.front());
        if (found == past_.end() || found->second.standing != Standing::gone) continue;
        if (found->second.until >= until) return;
        past_.erase(found);
    }
}

Result<void> Journal::mended() {
    if (auto done = append(std::string(mended_mark)); !done) return done;
    damaged_ = false;
    return {};
}

/// Also to a rewrite that is under way. After an Error the file has no such line.
Result<void> Journal::append(const std::string& line) {
    if (trouble_) return std::unexpected(*trouble_);
    if (!file_) return {};
    const std::string text = is_torn_ ? "\n" + line : line;
    const auto written = ::write(file_.get(), text.data(), text.size());
    if (written == static_cast<ssize_t>(text.size())) {
        is_torn_ = false;
        bytes_ += text.size();
        add_to_rewrite(line);
        return {};
    }
    const int code = written < 0 ? errno : ENOSPC;
    // Part of a line was written. If it cannot be cut off again, the next record begins with a line end, so
    // that it has a line of its own.
    const off_t end = written > 0 ? ::lseek(file_.get(), 0, SEEK_END) : 0;
    if (written > 0 && (end < written || ::ftruncate(file_.get(), end - written) != 0)) is_torn_ = true;
    return fail("cannot write the undo journal", path_, code);
}

/// False: it was removed or cut, or another one is in its place.
bool Journal::is_in_place() const {
    struct stat ours {
    }, there{};
    if (!file_ || ::fstat(file_.get(), &ours) != 0) return true; // nothing is known
    if (::lstat(path_.c_str(), &there) != 0) return errno != ENOENT && errno != ENOTDIR;
    return ours.st_ino == there.st_ino && ours.st_dev == there.st_dev &&
           static_cast<std::size_t>(ours.st_size) >= bytes_;
}

bool Journal::is_bloated() const {
    constexpr std::size_t smallest = 1U << 20, growth = 4;
    return bytes_ >= smallest && bytes_ >= growth * whole_bytes_;
}

/// If a step of a rewrite fails, there is none any more, and the old file stays in use.
void Journal::begin_rewrite() {
    const auto path = rewrite_path();
    ::unlink(path.c_str()); // left by a daemon that was killed
    rewrite_.reset(
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    rewritten_bytes_ = 0;
    rewritten_.reset();
    has_rewritten_held_ = false;
    add_to_rewrite(header());
}

/// A record that changes after it was copied is overtaken by the line of the change, which goes to both
/// files.
void Journal::rewrite_some() {
    std::string text;
    for (std::size_t i = 0; i < rewritten_at_a_time; ++i) {
        const auto& records = has_rewritten_held_ ? past_ : held_;
        if (const auto at = after(records, rewritten_); at != records.end()) {
            text += line_of(*at);
            rewritten_ = at->first;
        } else if (!std::exchange(has_rewritten_held_, true)) {
            rewritten_.reset();
        } else {
            if (damaged_) text += damage_mark;
            add_to_rewrite(text);
            return finish_rewrite();
        }
    }
    add_to_rewrite(text);
}

void Journal::add_to_rewrite(std::string_view text) {
    if (!rewrite_ || text.empty()) return;
    rewritten_bytes_ += text.size();
    if (::write(rewrite_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        give_up_rewrite();
}

void Journal::finish_rewrite() {
    if (!rewrite_) return;
    if (::rename(rewrite_path().c_str(), path_.c_str()) != 0) return give_up_rewrite();
    file_ = std::move(rewrite_);
    bytes_ = whole_bytes_ = rewritten_bytes_;
    is_torn_ = false;
}

void Journal::give_up_rewrite() {
    if (!rewrite_) return;
    rewrite_.reset();
    ::unlink(rewrite_path().c_str());
}

bool Journal::look_after_file(const std::function<bool()>& out_of_time) {
    if (!rewrite_) {
        trouble_.reset();
        const bool is_there = is_in_place();
        if (is_there && !is_bloated()) return true;
        if (!is_there)
            if (auto folder = renew_folder(); !folder) trouble_ = std::move(folder.error());
        if (trouble_) return true;
        begin_rewrite();
    }
    while (rewrite_) {
        rewrite_some();
        if (rewrite_ && out_of_time()) return false;
    }
    if (!is_in_place()) trouble_ = Error{"it is gone, and a new one cannot be written", path_};
    return true;
}

std::vector<Error> Journal::faults() const {
    auto faults = faults_;
    if (trouble_)
        faults.push_back({trouble_->message + "; nothing is changed until it can be written",
                          trouble_->subject, trouble_->code});
    return faults;
}

/// Nothing is written into a folder that another user has put in its place.
Result<void> Journal::renew_folder() {
    const auto folder = std::filesystem::path(path_).parent_path();
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
