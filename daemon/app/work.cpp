// SPDX-License-Identifier: Apache-2.0
#include "app/work.hpp"

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

void Work::begin_pass(std::unique_ptr<Job> pass) {
    ++passes_;
    pass_ = std::move(pass);
    want(Urgency::now);
}

void Work::begin_end(std::unique_ptr<Job> job) {
    urgent_.clear();
    jobs_.clear();
    pass_.reset();
    add(std::move(job));
}

bool Work::step_pass(const OutOfTime& out_of_time) {
    if (pass_ && !pass_->step(out_of_time)) return false;
    pass_.reset();
    return true;
}

bool Work::step(const OutOfTime& out_of_time) {
    if (!urgent_.step(out_of_time)) return false;
    pass_is_next_ = !pass_is_next_;
    if (pass_is_next_) return step_pass(out_of_time) && jobs_.empty();
    return jobs_.step(out_of_time) && !pass_;
}

} // namespace affinityd::app
