// SPDX-License-Identifier: Apache-2.0
#include "app/work.hpp"

namespace affinityd::app {

void Work::begin_pass(std::unique_ptr<Job> pass) {
    ++passes_;
    (pass_ ? next_pass_ : pass_) = std::move(pass);
    want(Urgency::now);
}

void Work::begin_end(std::unique_ptr<Job> job) {
    urgent_.clear();
    jobs_.clear();
    pass_.reset();
    next_pass_.reset();
    add(std::move(job));
}

bool Work::step_pass(const OutOfTime& out_of_time) {
    if (!pass_) return true;
    if (!pass_->step(out_of_time)) return false;
    pass_ = std::move(next_pass_);
    return !pass_;
}

bool Work::step(const OutOfTime& out_of_time) {
    if (!urgent_.step(out_of_time)) return false;
    is_passs_turn_ = !is_passs_turn_;
    if (is_passs_turn_) return step_pass(out_of_time) && jobs_.empty();
    return jobs_.step(out_of_time) && !pass_;
}

} // namespace affinityd::app
