// SPDX-License-Identifier: Apache-2.0
#include "app/status_job.hpp"

#include <algorithm>
#include <functional>

namespace affinityd::app {

void StatusJob::list_processes() {
    pids_.emplace();
    for (const auto& [pid, process] : parts_.tasks.processes())
        pids_->push_back(pid);
    std::ranges::sort(*pids_, std::greater{});
    text_.begin_list("processes");
}

bool StatusJob::step(const OutOfTime& out_of_time) {
    if (!pids_) list_processes();
    while (!pids_->empty()) {
        if (const auto* process = parts_.tasks.find(pids_->back())) text_.add(parts_.process(*process));
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
    answer_(parts_.complete(std::move(text_)));
    return true;
}

} // namespace affinityd::app
