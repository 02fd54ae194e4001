// SPDX-License-Identifier: Apache-2.0
#include "inventory/process_scan.hpp"

#include "inventory/descriptors.hpp"
#include "inventory/facts.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace affinityd::inventory {

namespace {

constexpr int most_rounds = 16;
constexpr int names_per_step = 128; ///< a listing of 50,000 threads takes longer than a slice

/// The process's own directory, if its number has not gone to another process since.
Result<std::optional<host::Dir>> own_directory(const host::Root& root, TaskId id) {
    auto dir = root.proc().dir(std::to_string(id.tid));
    if (!dir) {
        if (host::means_absent(dir.error().code)) return std::nullopt;
        return std::unexpected(dir.error());
    }
    StatBuffer buffer;
    const auto line = read_stat(*dir, "stat", buffer);
    if (!line) return std::unexpected(line.error());
    if (!*line || (*line)->start_time != id.start_time) return std::nullopt;
    return std::move(*dir);
}

} // namespace

/// The part of a scan that reads threads.
struct ProcessScan::Threads {
    std::optional<NumberedEntries> entries; ///< task/; no value: finished
    bool is_listing = true;
    std::vector<int> seen;   ///< ascending
    std::vector<int> listed; ///< of this round so far, while listing
    std::vector<int> fresh;  ///< of this round; still to be read from `next` on
    std::size_t next = 0;
    int rounds = 0;
    std::vector<Thread> found;
    std::optional<Error> fault;

    void stop(std::optional<Error> why = std::nullopt) {
        entries.reset();
        fault = std::move(why);
    }
    void list_some();
    void end_round();
    void read_next(const host::Root& root, int pid);
};

void ProcessScan::Threads::list_some() {
    for (int count = 0; count < names_per_step; ++count) {
        const auto tid = entries->next();
        if (!tid) return stop(tid.error());
        if (!*tid) return end_round();
        listed.push_back(**tid);
    }
}

void ProcessScan::Threads::end_round() {
    std::ranges::sort(listed);
    fresh.clear();
    std::ranges::set_difference(listed, seen, std::back_inserter(fresh));
    listed.clear();
    next = 0;
    is_listing = false;
    if (fresh.empty()) return stop();
    const auto middle = static_cast<std::ptrdiff_t>(seen.size());
    seen.insert(seen.end(), fresh.begin(), fresh.end());
    std::inplace_merge(seen.begin(), seen.begin() + middle, seen.end());
}

void ProcessScan::Threads::read_next(const host::Root& root, int pid) {
    const int tid = fresh[next++];
    StatBuffer buffer;
    const auto line = read_stat(entries->dir(), std::to_string(tid) + "/stat", buffer);
    if (!line) return stop(line.error());
    if (*line && (*line)->id == tid && !(*line)->is_dead()) found.push_back(make_thread(root, pid, **line));
    if (next < fresh.size()) return;
    if (++rounds == most_rounds) return stop();
    entries->rewind();
    is_listing = true;
}

ProcessScan::ProcessScan(const host::Root& root, const StatLine& line, std::shared_ptr<ProcessFacts> facts)
    : root_(&root), id_(facts->id()), flags_(line.flags), session_(line.session), count_(line.threads),
      is_leader_dead_(line.is_dead()), facts_(std::move(facts)) {}
ProcessScan::ProcessScan(ProcessScan&&) noexcept = default;
ProcessScan& ProcessScan::operator=(ProcessScan&&) noexcept = default;
ProcessScan::~ProcessScan() = default;

Result<std::optional<ProcessScan>> ProcessScan::open(const host::Root& root, int pid, FactSources* sources) {
    StatBuffer buffer;
    const auto read = read_stat(root.proc(), std::to_string(pid) + "/stat", buffer);
    if (!read) return std::unexpected(read.error());
    const auto& line = *read;
    if (!line || line->id != pid || (line->is_dead() && line->threads <= 1)) return std::nullopt;
    auto facts = std::make_shared<LazyFacts>(
        root, sources,
        LazyFacts::Cheap{
            {pid, line->start_time}, line->parent, line->flags, unescape_comm(line->comm), line->is_dead()});
    return ProcessScan(root, *line, std::move(facts));
}

void ProcessScan::begin_threads() {
    threads_ = std::make_unique<Threads>();
    const int pid = id_.tid;
    std::optional<NumberedEntries> tasks;
    // One thread by the kernel's own count: its list need not be looked at. A recording may be cut, so there
    // the list decides.
    if (count_ != 1 || !root_->is_live()) {
        const auto dir = own_directory(*root_, id_);
        if (!dir) return threads_->stop(dir.error());
        if (!*dir) return; // gone, with all its threads
        auto opened = NumberedEntries::open(**dir, "task");
        if (opened)
            tasks = std::move(*opened);
        else if (!host::means_absent(opened.error().code))
            return threads_->stop(opened.error());
    }
    if (!is_leader_dead_)
        threads_->found.push_back(
            {.id = id_, .comm = comm(), .flags = flags_, .allowed = read_mask(*root_, pid, pid)});
    threads_->seen.push_back(pid);
    threads_->entries = std::move(tasks);
}

bool ProcessScan::step(const std::function<bool()>& out_of_time) {
    if (!threads_) {
        begin_threads();
        if (threads_->entries && out_of_time()) return false;
    }
    while (threads_->entries) {
        if (threads_->is_listing)
            threads_->list_some();
        else
            threads_->read_next(*root_, id_.tid);
        if (threads_->entries && out_of_time()) return false;
    }
    return true;
}

Result<std::vector<Thread>> ProcessScan::take_threads() {
    if (!threads_) return std::vector<Thread>{};
    if (threads_->fault) return std::unexpected(*threads_->fault);
    auto& found = threads_->found;
    // The main thread stays first even if its number is not the lowest: numbers wrap.
    const auto rest = found.begin() + (!found.empty() && found.front().id == id_ ? 1 : 0);
    std::sort(rest, found.end(), [](const Thread& a, const Thread& b) { return a.id < b.id; });
    return std::exchange(found, {});
}

} // namespace affinityd::inventory
