// SPDX-License-Identifier: Apache-2.0
#include "app/balancer.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

bool Balancer::is_due() const {
    constexpr std::chrono::seconds usual{60};
    const auto interval = parts_.interval.count() > 0 ? parts_.interval : usual;
    return !begun_ || Clock::now() - *begun_ >= interval;
}

bool Balancer::step(const OutOfTime& out_of_time) {
    if (!weighing_ && !redeal_) {
        if (moved_ > 0) return measure_again(out_of_time);
        if (!is_due()) return true;
        const auto before = std::exchange(begun_, Clock::now());
        weighing_ = std::make_unique<Weighing>(parts_.root, parts_.tasks, parts_.assignments, before);
    }
    if (weighing_) {
        if (!weighing_->step(out_of_time)) return false;
        weighing_.reset();
        interrupts_.weigh();
        parts_.assignments.use(parts_.current.placements().load);
        basis_ = parts_.current.placements().load;
        redeal_ = std::make_unique<planner::Redeal>(parts_.current.placements(), parts_.assignments);
    }
    if (basis_ != parts_.current.placements().load) { // worked out anew: the next time is soon enough
        redeal_.reset();
        return true;
    }
    if (!redeal_->step(out_of_time)) return false;
    finish();
    return true;
}

bool Balancer::measure_again(const OutOfTime& out_of_time) {
    if (!again_) again_ = std::make_unique<planner::Redeal>(parts_.current.placements(), parts_.assignments);
    if (!again_->measure(out_of_time)) return false;
    goodness_ = again_->goodness();
    goodness_->moves = std::exchange(moved_, 0);
    again_.reset();
    return true;
}

void Balancer::finish() {
    const auto redeal = std::exchange(redeal_, nullptr);
    goodness_ = redeal->goodness();
    if (parts_.interval.count() == 0 || redeal->moves().empty()) return;
    std::set<TaskId> moved; // one may have slots of several distributions
    for (const auto& [task, table, from, to] : redeal->moves()) {
        parts_.assignments.move(task, table, from, to);
        moved.insert(task);
    }
    goodness_->moves = moved_ = moved.size();
    parts_.log.info(
        fmt::format("{} tasks change places: the busiest core had {:.2f} CPUs of work", moved.size(),
                    static_cast<double>(goodness_->busiest) / static_cast<double>(planner::one_cpu)),
        "slots dealt anew");
    parts_.has_moved();
}

} // namespace affinityd::app
