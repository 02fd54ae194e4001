// SPDX-License-Identifier: Apache-2.0
#include "inventory/process_scan.hpp"

#include "inventory/descriptors.hpp"
#include "inventory/facts.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::inventory {

namespace {

constexpr int most_rounds = 16;

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
    std::vector<int> seen;                  ///< ascending
    bool has_new = false;                   ///< this round has found a thread that none before had
    int rounds = 0;
    std::vector<Thread> found;
    std::optional<Error> fault;
};

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
    auto facts = lazy_facts(
        root, sources,
        {{pid, line->start_time}, line->parent, line->flags, unescape_comm(line->comm), line->is_dead()});
    return ProcessScan(root, *line, std::move(facts));
}

Result<void> ProcessScan::begin_threads() {
    threads_ = std::make_unique<Threads>();
    const int pid = id_.tid;
    // The kernel counts one thread: the list need not be looked at. A recording may be cut, so there the list
    // decides.
    if (count_ != 1 || !root_->is_live()) {
        const auto dir = own_directory(*root_, id_);
        if (!dir) return std::unexpected(dir.error());
        if (!*dir) return {}; // gone, with all its threads
        auto tasks = NumberedEntries::open(**dir, "task");
        if (tasks)
            threads_->entries = std::move(*tasks);
        else if (!host::means_absent(tasks.error().code))
            return std::unexpected(tasks.error());
    }
    if (!is_leader_dead_)
        threads_->found.push_back(
            {.id = id_, .comm = comm(), .flags = flags_, .allowed = read_mask(*root_, pid, pid)});
    threads_->seen.push_back(pid);
    return {};
}

/// The next thread of the list; at its end it begins anew if there were any that are new.
Result<void> ProcessScan::read_next() {
    auto& threads = *threads_;
    const auto tid = threads.entries->next();
    if (!tid) return std::unexpected(tid.error());
    if (!*tid) {
        if (!std::exchange(threads.has_new, false) || ++threads.rounds == most_rounds)
            threads.entries.reset();
        else
            threads.entries->rewind();
        return {};
    }
    const auto at = std::ranges::lower_bound(threads.seen, **tid); // mostly the end
    if (at != threads.seen.end() && *at == **tid) return {};
    threads.seen.insert(at, **tid);
    threads.has_new = true;
    StatBuffer buffer;
    const auto line = read_stat(threads.entries->dir(), std::to_string(**tid) + "/stat", buffer);
    if (!line) return std::unexpected(line.error());
    if (*line && (*line)->id == **tid && !(*line)->is_dead())
        threads.found.push_back(make_thread(*root_, id_.tid, **line));
    return {};
}

bool ProcessScan::step(const std::function<bool()>& out_of_time) {
    auto done = threads_ ? Result<void>() : begin_threads();
    while (done && threads_->entries) {
        done = read_next();
        if (done && threads_->entries && out_of_time()) return false;
    }
    if (!done) {
        threads_->fault = done.error();
        threads_->entries.reset();
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
