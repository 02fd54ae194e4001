// SPDX-License-Identifier: Apache-2.0
#include "app/status_job.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace affinityd::app {

void StatusJob::list_processes() {
    pids_.emplace();
    for (const auto& [pid, process] : parts_.tasks.processes())
        pids_->push_back(pid);
    std::ranges::sort(*pids_, std::greater{});
    text_.begin_list("processes");
}

/// True: it has been told of. Between two slices it may have lost threads, or have ended.
bool StatusJob::add_process(int pid, const OutOfTime& out_of_time) {
    const auto* process = parts_.tasks.find(pid);
    if (!begun_) {
        if (process == nullptr) return true;
        const auto value = parts_.process(*process);
        if (!value) return true;
        begun_ = Begun{process->id, value->owner};
        text_.begin_process(*value);
    }
    const bool is_there = process != nullptr && process->id == begun_->id;
    for (auto at = is_there ? process->threads.count_below(begun_->next_tid) : 0;
         is_there && at < process->threads.size(); ++at) {
        const auto& thread = *(process->threads.begin() + static_cast<std::ptrdiff_t>(at));
        if (const auto value = parts_.thread(thread, pid)) text_.add(*value, begun_->owner);
        begun_->next_tid = thread.id.tid + 1;
        if (at + 1 < process->threads.size() && out_of_time()) return false;
    }
    text_.end_process();
    begun_.reset();
    return true;
}

bool StatusJob::step(const OutOfTime& out_of_time) {
    if (!pids_) list_processes();
    while (!pids_->empty()) {
        if (!add_process(pids_->back(), out_of_time)) return false;
        pids_->pop_back();
        if (out_of_time()) return false;
    }
    if (!targets_) {
        targets_ = parts_.current.placements().queues;
        text_.begin_list("queues");
    }
    while (next_queue_ < targets_->size()) {
        text_.add(parts_.queue((*targets_)[next_queue_++]));
        if (out_of_time()) return false;
    }
    // What is left, and to send it all, is long enough for a slice of its own.
    if (!std::exchange(is_listed_, true)) return false;
    answer_(parts_.complete(std::move(text_)));
    return true;
}

} // namespace affinityd::app
