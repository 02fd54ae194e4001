// SPDX-License-Identifier: Apache-2.0
#include "state/joined_threads.hpp"

#include "base/text.hpp"
#include "host/file.hpp"
#include "state/journal_line.hpp"

#include <utility>

namespace affinityd::state {

namespace {

constexpr std::string_view joined_mark = "joined", left_mark = "left";
constexpr std::size_t fields_of_join = 7, fields_of_end = 3;

Error not_written(const Error& why) {
    return {"what threads have joined cannot be written down, and the next daemon will not know of it: " +
                why.to_string(),
            {}};
}

std::string end_of(const TaskId& thread) {
    return LineWriter(left_mark).number(thread.tid).number(thread.start_time).finish();
}

} // namespace

Result<void> JoinedThreads::open(const std::string& path, JoinedThreads& into) {
    if (path.empty()) return {};
    auto text = host::read_file(path, longest_file, host::Links::refused);
    std::string whole;
    if (text && *text && boot_of(**text) != FileBoot::another) {
        for (const auto line : split(**text, '\n'))
            into.take_line(line);
        for (const auto& [thread, entry] : into.threads_)
            whole += line_of(thread, entry);
    }
    into.file_ = JournalFile(path);
    if (auto done = into.file_.replace(whole); !done) {
        into.is_behind_ = true;
        return std::unexpected(not_written(done.error()));
    }
    if (!text) return std::unexpected(std::move(text.error()));
    return {};
}

void JoinedThreads::take_line(std::string_view line) {
    const auto fields = fields_of(line);
    if (fields.size() < fields_of_end || (fields[0] != joined_mark && fields[0] != left_mark)) return;
    const auto tid = parse_number<int>(fields[1]);
    const auto start = parse_number<std::uint64_t>(fields[2]);
    if (!tid || !start) return;
    if (fields[0] == left_mark) return erase({*tid, *start});
    const auto pid = fields.size() == fields_of_join ? parse_number<int>(fields[3]) : std::nullopt;
    if (!pid || (find({*tid, *start}) == nullptr && !has_room(*pid))) return;
    set({*tid, *start}, {*pid, {unescaped(fields[4]), unescaped(fields[5]), fields[6] == "serves"}});
}

std::string JoinedThreads::line_of(const TaskId& thread, const Entry& entry) {
    return LineWriter(joined_mark)
        .number(thread.tid)
        .number(thread.start_time)
        .number(entry.pid)
        .escaped(entry.joined.policy)
        .escaped(entry.joined.slot)
        .plain(entry.joined.serves ? "serves" : "-")
        .finish();
}

const planner::Joined* JoinedThreads::find(const TaskId& thread) const {
    const auto found = threads_.find(thread);
    return found == threads_.end() ? nullptr : &found->second.joined;
}

bool JoinedThreads::has_room(int pid) const {
    const auto of = of_process_.find(pid);
    return threads_.size() < most && (of == of_process_.end() || of->second < most_of_process);
}

void JoinedThreads::set(const TaskId& thread, Entry entry) {
    erase(thread);
    ++of_process_[entry.pid];
    threads_.emplace(thread, std::move(entry));
}

void JoinedThreads::erase(const TaskId& thread) {
    const auto found = threads_.find(thread);
    if (found == threads_.end()) return;
    const auto of = of_process_.find(found->second.pid);
    if (--of->second == 0) of_process_.erase(of);
    threads_.erase(found);
}

Result<void> JoinedThreads::put(int pid, const TaskId& thread, planner::Joined joined) {
    if (const auto* before = find(thread); before != nullptr && *before == joined) return {};
    Entry entry{pid, std::move(joined)};
    auto done = append(line_of(thread, entry));
    set(thread, std::move(entry));
    return done;
}

Result<void> JoinedThreads::forget(const TaskId& thread) {
    if (find(thread) == nullptr) return {};
    erase(thread);
    return append(end_of(thread));
}

Result<void> JoinedThreads::append(const std::string& line) {
    const auto done = file_.append(line);
    if (done) return {};
    is_behind_ = true;
    return std::unexpected(not_written(done.error()));
}

std::vector<TaskId> JoinedThreads::ids() const {
    std::vector<TaskId> ids;
    ids.reserve(threads_.size());
    for (const auto& [thread, entry] : threads_)
        ids.push_back(thread);
    return ids;
}

bool JoinedThreads::tidy(const std::function<bool(int pid, const TaskId&, const planner::Joined&)>& is_there,
                         const std::function<bool()>& out_of_time) {
    if (!doubtful_) doubtful_ = ids();
    while (!doubtful_->empty()) {
        const auto thread = doubtful_->back();
        doubtful_->pop_back();
        const auto found = threads_.find(thread);
        if (found != threads_.end() && !is_there(found->second.pid, thread, found->second.joined)) {
            // If that cannot be written, the next daemon finds out by itself.
            static_cast<void>(forget(thread));
        }
        if (out_of_time()) return false;
    }
    if (!unwritten_ && (is_behind_ || file_.is_bloated() || !file_.is_in_place())) {
        file_.begin_rewrite();
        unwritten_ = ids();
        is_behind_ = false;
    }
    while (file_.is_rewriting() && !unwritten_->empty()) {
        // As it is now: what changes afterwards is written behind it.
        const auto found = threads_.find(unwritten_->back());
        if (found != threads_.end()) file_.add_to_rewrite(line_of(found->first, found->second));
        unwritten_->pop_back();
        if (out_of_time()) return false;
    }
    if (unwritten_ && !file_.is_rewriting()) is_behind_ = true; // it was given up: the disk is full
    file_.finish_rewrite();
    unwritten_.reset();
    doubtful_.reset();
    return true;
}

} // namespace affinityd::state
