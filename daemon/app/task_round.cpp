// SPDX-License-Identifier: Apache-2.0
#include "app/task_round.hpp"

namespace affinityd::app {

std::optional<int> TaskRound::next_pid() {
    if (!pids_) {
        auto pids = inventory::PidStream::open(root_);
        if (!pids) return give_up("the processes could not be listed: " + pids.error().to_string());
        pids_ = std::move(*pids);
    }
    const auto pid = pids_->next();
    if (!pid) return give_up("the list of processes broke off: " + pid.error().to_string());
    return *pid;
}

std::nullopt_t TaskRound::give_up(const std::string& why) {
    log_.error(why, "not listed");
    for (auto& [pid, process] : tasks_.table().processes())
        process.look.is_unread = true;
    return std::nullopt;
}

bool TaskRound::begin_next() {
    const auto pid = next_pid();
    is_listed_ = !pid;
    if (!pid) return true;
    auto scan = inventory::ProcessScan::open(root_, *pid, &tasks_.sources());
    if (!scan) {
        log_.error(scan.error().to_string(), {"process not read", *pid});
        if (auto* known = tasks_.table().find(*pid)) known->look.is_unread = true;
    }
    if (!scan || !*scan) return false;
    listeners_.seen(**scan);
    turn_ = tasks_.begin_turn(**scan);
    return turn_.has_value();
}

bool TaskRound::step(const OutOfTime& out_of_time) {
    while (!is_listed_) {
        if (turn_ || begin_next()) {
            if (turn_ && !tasks_.go_on(*turn_, out_of_time)) return false;
            if (turn_)
                if (const auto* known = tasks_.table().find(turn_->scan.id().tid)) listeners_.placed(*known);
            turn_.reset();
        }
        if (!is_listed_ && out_of_time()) return false;
    }
    return true;
}

} // namespace affinityd::app
