// SPDX-License-Identifier: Apache-2.0
#include "inventory/task_reader.hpp"

#include "inventory/facts.hpp"
#include "inventory/stat_file.hpp"

#include <algorithm>
#include <iterator>

namespace affinityd::inventory {

namespace {

constexpr int most_rounds = 16; // a fork bomb of threads must not hold the scan for ever

} // namespace

bool TaskReader::step(const std::function<bool()>& out_of_time) {
    while (stage_ != Stage::done) {
        switch (stage_) {
        case Stage::start:
            stage_ = read_main();
            break;
        case Stage::list:
            stage_ = list_new();
            break;
        case Stage::threads:
            read_next();
            if (next_ == fresh_.size()) stage_ = Stage::list;
            break;
        case Stage::done:
            break;
        }
        if (stage_ != Stage::done && out_of_time()) return false;
    }
    return true;
}

TaskReader::Stage TaskReader::read_main() {
    StatBuffer buffer;
    const auto line = read_stat(root_->proc(), std::to_string(pid_) + "/stat", buffer).value_or(std::nullopt);
    if (!line) return Stage::done;
    if (line->is_dead() && line->threads <= 1) return Stage::done;
    const TaskId id{pid_, line->start_time};
    facts_ = std::make_shared<LazyFacts>(
        *root_, sources_, LazyFacts::Cheap{id, line->parent, line->flags, unescape_comm(line->comm)});
    if (!line->is_dead()) threads_.push_back(make_thread(*root_, pid_, *line));
    seen_.push_back(pid_);
    // One thread by the kernel's own count: no need to look at the list. Recordings may be cut, so there it
    // is looked at.
    if (line->threads == 1 && root_->is_live()) return Stage::done;
    auto tasks = NumberedEntries::open(root_->proc(), std::to_string(pid_) + "/task");
    if (!tasks) return Stage::done;
    tasks_ = std::move(*tasks);
    return Stage::list;
}

TaskReader::Stage TaskReader::list_new() {
    if (rounds_++ == most_rounds) return Stage::done;
    if (rounds_ > 1) tasks_->rewind();
    listed_.clear();
    while (const auto tid = tasks_->next().value_or(std::nullopt))
        listed_.push_back(*tid);
    std::ranges::sort(listed_);
    fresh_.clear();
    std::ranges::set_difference(listed_, seen_, std::back_inserter(fresh_));
    next_ = 0;
    if (fresh_.empty()) return Stage::done;
    const auto middle = static_cast<std::ptrdiff_t>(seen_.size());
    seen_.insert(seen_.end(), fresh_.begin(), fresh_.end());
    std::inplace_merge(seen_.begin(), seen_.begin() + middle, seen_.end());
    return Stage::threads;
}

void TaskReader::read_next() {
    const int tid = fresh_[next_++];
    StatBuffer buffer;
    const auto line = read_stat(tasks_->dir(), std::to_string(tid) + "/stat", buffer).value_or(std::nullopt);
    if (line && line->id == tid && !line->is_dead()) threads_.push_back(make_thread(*root_, pid_, *line));
}

std::optional<Process> TaskReader::take() {
    if (!facts_) return std::nullopt;
    // The main thread comes first even if its number is not the lowest (numbers wrap).
    const auto first = threads_.begin();
    const bool has_main = first != threads_.end() && first->id.tid == pid_;
    std::sort(has_main ? first + 1 : first, threads_.end(),
              [](const Thread& a, const Thread& b) { return a.id < b.id; });
    return Process{std::move(facts_), std::move(threads_)};
}

} // namespace affinityd::inventory
