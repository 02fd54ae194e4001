// SPDX-License-Identifier: Apache-2.0
#include "app/job.hpp"

namespace affinityd::app {

void Jobs::add(std::unique_ptr<Job> job) {
    jobs_.push_back(std::move(job));
    on_work_();
}

bool Jobs::step(const OutOfTime& out_of_time) {
    while (!jobs_.empty()) {
        // A job may add others while it works, but never takes any away.
        const auto& first = jobs_.front();
        if (!first->step(out_of_time)) return false;
        jobs_.pop_front();
        if (out_of_time()) break;
    }
    return jobs_.empty();
}

} // namespace affinityd::app
