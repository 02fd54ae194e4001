// SPDX-License-Identifier: Apache-2.0
#include "app/listener_round.hpp"

#include <utility>

namespace affinityd::app {

bool ListenerRound::step(const OutOfTime& out_of_time) {
    if (!std::exchange(is_begun_, true)) listeners_.begin_anew();
    while (const auto* target = listeners_.next_target()) {
        listeners_.put_right(*target);
        if (out_of_time()) return false;
    }
    if (!rest_) rest_ = listeners_.without_target();
    auto& records = listeners_.records();
    while (!rest_->unwanted.empty()) {
        records.restore(rest_->unwanted.back());
        rest_->unwanted.pop_back();
        if (out_of_time()) return false;
    }
    while (!rest_->doubtful.empty()) {
        records.settle(rest_->doubtful.back(), Listeners::Clock::now());
        rest_->doubtful.pop_back();
        if (out_of_time()) return false;
    }
    listeners_.end_round();
    return true;
}

} // namespace affinityd::app
