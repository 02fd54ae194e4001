// SPDX-License-Identifier: Apache-2.0
#include "app/group_members.hpp"

#include <algorithm>

namespace affinityd::app {

bool GroupMembers::read_next() {
    if (!walk_) {
        if (groups_.empty()) return true;
        walk_.emplace(sys_, "fs/cgroup" + groups_.back(), 0);
        groups_.pop_back();
    }
    const auto done = walk_->step(pids_);
    if (done && !*done) return false;
    if (!done) too_many_(); // it cannot be read: a pass goes by processes
    walk_.reset();
    return groups_.empty();
}

bool GroupMembers::step(const OutOfTime& out_of_time) {
    bool is_read = next_ > 0;
    while (!is_read) {
        is_read = read_next();
        if (pids_.size() > most) {
            too_many_();
            return true;
        }
        if (out_of_time() && !is_read) return false;
    }
    while (next_ < pids_.size()) {
        tasks_.process_moved(pids_[next_++]);
        if (out_of_time()) return next_ == pids_.size();
    }
    return true;
}

} // namespace affinityd::app
