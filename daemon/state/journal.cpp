// SPDX-License-Identifier: Apache-2.0
#include "state/journal.hpp"

#include "host/file.hpp"
#include "planner/plan.hpp"
#include "state/record.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace affinityd::state {

namespace {

using planner::Held;
using planner::Subject;
using planner::TaskMask;

constexpr std::size_t least_lines_to_compact = 4096;
constexpr std::size_t most_givers =
    65536; // processes that come and go between two passes: bounded, like all that others can grow
constexpr std::size_t most_masks_of_a_giver = 1024;
constexpr std::size_t largest_journal = 256U << 20;
constexpr std::size_t largest_foreign_journal = 16U << 20;
constexpr const char* damage_mark =
    "lines were lost\n"; // not a record, so whoever reads it finds it damaged too

} // namespace

Result<Journal> Journal::open(const std::string& path) {
    Journal journal(path);
    if (path.empty()) return journal;
    const auto text = host::read_file(path, largest_journal);
    if (!text) return std::unexpected(text.error());
    if (*text) journal.replay(**text);
    journal.damaged_ = journal.unreadable_ > 0;
    // Written anew at once: a torn last line would otherwise run into the next record.
    if (auto done = journal.compact(); !done) {
        journal.use_as_it_is(*text ? std::string_view(**text) : std::string_view());
        if (!journal.file_) return std::unexpected(done.error());
    }
    return journal;
}

Result<Journal> Journal::read(const std::string& path) {
    Journal journal("");
    const auto text = host::read_file(path, largest_foreign_journal);
    if (!text) return std::unexpected(text.error());
    if (*text) journal.replay(**text);
    return journal;
}

void Journal::use_as_it_is(std::string_view text) {
    file_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    torn_ = !text.empty() && !text.ends_with('\n');
    lines_ = static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

Result<void> Journal::mended() {
    damaged_ = false; // compact() writes the mark of it
    auto done = compact();
    damaged_ = !done.has_value();
    return done;
}

void Journal::replay(std::string_view text) {
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto record = end == std::string_view::npos ? std::nullopt : parse_line(text.substr(0, end));
        if (!record)
            ++unreadable_;
        else if (record->held)
            insert(record->subject) = *record->held;
        else
            erase(record->subject);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
}

Held* Journal::held_of(const Subject& subject) {
    if (const auto* task = std::get_if<TaskMask>(&subject)) {
        const auto found = tasks_.find(task->task);
        return found == tasks_.end() ? nullptr : &found->second.held;
    }
    const auto found = queues_.find(queue_key(subject));
    return found == queues_.end() ? nullptr : &found->second.held;
}

/// What is known of it, or is to be; with the newest number and name of the same thing.
Held& Journal::insert(const Subject& subject) {
    if (const auto* task = std::get_if<TaskMask>(&subject)) {
        const auto [at, is_new] = tasks_.try_emplace(task->task, Task{task->pid, {}, {}});
        if (is_new) threads_of_[task->pid].push_back(task->task);
        at->second.comm = task->comm;
        return at->second.held;
    }
    auto& entry = queues_[queue_key(subject)];
    entry.subject = subject;
    return entry.held;
}

void Journal::erase(const Subject& subject) {
    const auto* task = std::get_if<TaskMask>(&subject);
    if (task == nullptr) {
        queues_.erase(queue_key(subject));
        return;
    }
    const auto at = tasks_.find(task->task);
    if (at == tasks_.end()) return;
    remember_giver(at->second.pid, at->second.held);
    const auto threads = threads_of_.find(at->second.pid);
    if (threads != threads_of_.end()) {
        std::erase(threads->second, task->task);
        if (threads->second.empty()) threads_of_.erase(threads);
    }
    tasks_.erase(at);
}

const Held* Journal::find(const Subject& subject) const {
    return const_cast<Journal*>(this)->held_of(subject); // which changes nothing either
}

const Held* Journal::find_giver(int creator, const CpuSet& mask, const CpuSet& online) const {
    const auto gave = [&](const Held& held) { return planner::is_still_ours(held, mask, online); };
    if (const auto threads = threads_of_.find(creator); threads != threads_of_.end())
        for (const auto& id : threads->second)
            if (const Held& held = tasks_.at(id).held; gave(held)) return &held;
    for (const auto* givers : {&givers_, &older_givers_})
        if (const auto found = givers->find(creator); found != givers->end())
            for (const auto& held : found->second)
                if (gave(held)) return &held;
    return nullptr;
}

bool Journal::is_giver(int pid, int parent) const {
    const auto gave = [&](int process) {
        return threads_of_.contains(process) || givers_.contains(process) || older_givers_.contains(process);
    };
    return gave(pid) || gave(parent);
}

void Journal::remember_giver(int pid, const Held& held) {
    if (givers_.size() >= most_givers) givers_.clear();
    auto& of_process = givers_[pid];
    if (std::ranges::find(of_process, held) == of_process.end() && of_process.size() < most_masks_of_a_giver)
        of_process.push_back(held);
}

void Journal::age_givers() {
    older_givers_ = std::move(givers_);
    givers_.clear();
}

Result<void> Journal::remember(const Subject& subject, const CpuSet& original, const CpuSet& asked,
                               const std::string& policy) {
    const Held* known = find(subject);
    const Held held{known == nullptr ? original : known->original, asked, asked, policy};
    if (auto done = append(to_line({subject, held})); !done) return done;
    // Who was created before this change and is seen only after it has the mask of before.
    if (const auto* task = std::get_if<TaskMask>(&subject);
        task != nullptr && known != nullptr && known->granted != asked)
        remember_giver(task->pid, *known);
    insert(subject) = held;
    return {};
}

Result<void> Journal::confirm(const Subject& subject, const CpuSet& granted) {
    Held* known = held_of(subject);
    if (known == nullptr || known->granted == granted) return {};
    Held held = *known;
    held.granted = granted;
    if (auto done = append(to_line({subject, held})); !done) return done;
    *known = std::move(held);
    return {};
}

Result<void> Journal::forget(const Subject& subject) {
    if (find(subject) == nullptr) return {};
    erase(subject);
    return append(to_line({subject, std::nullopt}));
}

std::vector<Journal::Entry> Journal::entries() const {
    std::vector<Entry> all;
    all.reserve(size());
    for (const auto& [id, task] : tasks_)
        all.push_back({TaskMask{id, task.pid, task.comm}, task.held});
    for (const auto& [key, entry] : queues_)
        all.push_back(entry);
    return all;
}

std::vector<Journal::Entry> Journal::queues() const {
    std::vector<Entry> all;
    for (const auto& [key, entry] : queues_)
        all.push_back(entry);
    return all;
}

std::vector<std::pair<int, std::vector<TaskId>>>
Journal::threads(const std::function<bool(int)>& wanted) const {
    std::vector<std::pair<int, std::vector<TaskId>>> found;
    for (const auto& [pid, threads] : threads_of_)
        if (wanted(pid)) found.emplace_back(pid, threads);
    return found;
}

std::span<const TaskId> Journal::threads(int pid) const {
    const auto found = threads_of_.find(pid);
    return found == threads_of_.end() ? std::span<const TaskId>() : found->second;
}

Result<void> Journal::append(const std::string& line) {
    if (path_.empty()) return {};
    // A failed rewrite leaves the old file as it is, and that still takes the line.
    if (lines_ > least_lines_to_compact && lines_ > 4 * size()) static_cast<void>(compact().has_value());
    const std::string text = torn_ ? "\n" + line : line;
    const auto written = ::write(file_.get(), text.data(), text.size());
    if (written == static_cast<ssize_t>(text.size())) {
        torn_ = false;
        ++lines_;
        return {};
    }
    const int code = written < 0 ? errno : ENOSPC;
    // Part of a line was written: the next record begins with a line end, to stand on a line of its own.
    if (written > 0) torn_ = true;
    return fail("cannot write the undo journal", path_, code);
}

Result<void> Journal::compact() {
    std::string text;
    for (const auto& entry : entries())
        text += to_line({entry.subject, entry.held});
    if (damaged_) text += damage_mark;
    if (auto done = host::replace_file(path_, text, 0600); !done) return done;
    file_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
    if (!file_) return fail("cannot open the undo journal", path_, errno);
    lines_ = size();
    torn_ = false;
    return {};
}

} // namespace affinityd::state
