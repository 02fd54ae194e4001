// SPDX-License-Identifier: Apache-2.0
#include "planner/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace affinityd::planner {

namespace {

constexpr std::uint16_t most_times = 10;    ///< that count
constexpr std::uint16_t enough_times = 5;   ///< to know how far a task's weights are from each other
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
        mean_ = static_cast<std::uint32_t>(now);
        times_ = 1;
        return;
    }
    times_ = std::min<std::uint16_t>(times_ + 1, most_times);
    const double part = 1.0 / times_;
    mean_ = static_cast<std::uint32_t>(std::lround(mean_ + part * away));
    spread_ = static_cast<std::uint32_t>(
        std::lround(std::sqrt((1 - part) * (spread * spread + part * away * away))));
}

Weight Estimate::error() const {
    return times_ < 2 ? 0 : static_cast<Weight>(spread_ / std::sqrt(times_ - 1.0));
}

} // namespace affinityd::planner
