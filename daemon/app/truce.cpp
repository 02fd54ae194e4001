// SPDX-License-Identifier: Apache-2.0
#include "app/truce.hpp"

#include "app/log.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

constexpr unsigned fight_threshold = 5;
constexpr unsigned most_doublings = 6;

} // namespace

bool Truce::correct(const Terms& terms, Clock::time_point now) {
    if (now - std::max(last_, until_) > terms.window) corrections_ = 0;
    last_ = now;
    if (++corrections_ < fight_threshold) return false;
    until_ = now + terms.first * (1U << std::min(corrections_ - fight_threshold, most_doublings));
    return true;
}

void tell_of_fight(Log& log, const planner::Action& action) {
    log.warn(fmt::format("{}: somebody else keeps changing its mask (now {}): left alone for a while",
                         planner::to_string(action.subject), action.from.to_list()));
}

} // namespace affinityd::app
