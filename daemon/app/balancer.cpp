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
        if (moved_ > 0) {
            look_at_placements();
        } else {
            if (!is_due()) return true;
            const auto before = std::exchange(begun_, Clock::now());
            weighing_ = std::make_unique<Weighing>(parts_.root, parts_.tasks, parts_.assignments, before);
        }
    }
    if (weighing_) {
        if (!weighing_->step(out_of_time)) return false;
        weighing_.reset();
        interrupts_.weigh();
        look_at_placements();
    }
    if (basis_ != parts_.current.placements().load) { // worked out anew: the next time is soon enough
        redeal_.reset();
        return true;
    }
    const bool is_done = moved_ > 0 ? redeal_->measure(out_of_time) : redeal_->step(out_of_time);
    if (is_done) finish();
    return is_done;
}

void Balancer::look_at_placements() {
    basis_ = parts_.current.placements().load;
    parts_.assignments.use(basis_);
    redeal_ = std::make_unique<planner::Redeal>(parts_.current.placements(), parts_.assignments);
}

void Balancer::finish() {
    const auto redeal = std::exchange(redeal_, nullptr);
    goodness_ = redeal->goodness();
    if (moved_ > 0) { // this was about what came of it
        goodness_->moves = std::exchange(moved_, 0);
        return;
    }
    if (parts_.interval.count() == 0 || redeal->moves().empty()) return;
    std::set<TaskId> moved; // one may have slots of several distributions
    for (const auto& [task, table, from, to] : redeal->moves()) {
        if (parts_.tell.is_settled(task)) continue;
        parts_.assignments.move(task, table, from, to);
        moved.insert(task);
    }
    if (moved.empty()) return;
    goodness_->moves = moved_ = moved.size();
    parts_.log.info(
        fmt::format("{} tasks change places: the busiest core had {:.2f} CPUs of work", moved.size(),
                    static_cast<double>(goodness_->busiest) / static_cast<double>(planner::one_cpu)),
        "slots dealt anew");
    parts_.tell.has_moved();
}

} // namespace affinityd::app
