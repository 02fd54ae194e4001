// SPDX-License-Identifier: Apache-2.0
#include "locality/pace.hpp"

#include "host/patient_call.hpp"

#include <utility>

namespace affinityd::locality {

namespace {
constexpr std::chrono::microseconds turn{200};
constexpr int pauses_per_turn = 19; // a twentieth of a CPU
} // namespace

Pace::Pace(std::stop_token stop, std::chrono::nanoseconds most)
    : stop_(std::move(stop)), left_(most), seen_(host::thread_time_with_calls()),
      turn_end_(Clock::now() + turn), is_over_(most.count() <= 0) {}

bool Pace::goes_on() {
    if (is_over_ || Clock::now() < turn_end_) return !is_over_;
    const auto now = host::thread_time_with_calls();
    const auto used = now - std::exchange(seen_, now);
    left_ -= used;
    if (left_.count() > 0) pause(used);
    is_over_ = left_.count() <= 0 || stop_.stop_requested();
    turn_end_ = Clock::now() + turn;
    return !is_over_;
}

void Pace::pause(std::chrono::nanoseconds used) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop_, pauses_per_turn * used, [] { return false; });
}

} // namespace affinityd::locality
