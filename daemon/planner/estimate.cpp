// SPDX-License-Identifier: Apache-2.0
#include "planner/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace affinityd::planner {

namespace {

constexpr std::uint16_t most_times = 60;    ///< that count
constexpr std::uint16_t recent_times = 10;  ///< that are recent
constexpr std::uint16_t enough_times = 5;   ///< to know how far a task's weights are from each other
constexpr double least_change = 0.7;        ///< of recent times, in spreads: three standard errors
constexpr double least_odd = one_cpu * 0.2; ///< what is less than this from the average is not odd

} // namespace

void Estimate::weigh(Weight weight) {
    constexpr Weight most = std::numeric_limits<std::uint32_t>::max();
    const auto now = static_cast<double>(std::clamp(weight, Weight{0}, most));
    const double away = now - mean_, spread = spread_;
    const std::int16_t side = away > 0 ? 1 : -1;
    const bool is_second = odd_ == side; // the first has made the spread larger
    const bool is_odd =
        times_ >= enough_times && std::abs(away) > std::max(least_odd, (is_second ? 2 : 3) * spread);
    odd_ = is_odd ? side : std::int16_t{0};
    if (times_ == 0 || (is_odd && is_second)) {
        *this = {};
        mean_ = recent_ = static_cast<std::uint32_t>(now);
        times_ = 1;
        return;
    }
    times_ = std::min<std::uint16_t>(times_ + 1, most_times);
    const double part = 1.0 / times_;
    mean_ = static_cast<std::uint32_t>(std::lround(mean_ + part * away));
    spread_ = static_cast<std::uint32_t>(
        std::lround(std::sqrt((1 - part) * (spread * spread + part * away * away))));
    const double recent_part = 1.0 / std::min(times_, recent_times);
    recent_ = static_cast<std::uint32_t>(std::lround(recent_ + recent_part * (now - recent_)));
    const double change = std::abs(static_cast<double>(recent_) - mean_);
    if (times_ <= recent_times || change <= least_change * spread_) return;
    mean_ = recent_;
    times_ = recent_times;
}

Weight Estimate::error() const {
    if (times_ < 2) return 0;
    // What is longer ago proves half: use in one minute is often like that of the minute before.
    const double later = std::max(0, times_ - recent_times) / 2.0;
    return static_cast<Weight>(spread_ / std::sqrt(std::min(times_, recent_times) - 1 + later));
}

} // namespace affinityd::planner
