// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "events/sources.hpp"

#include <chrono>
#include <cstdint>
#include <functional>

namespace affinityd::events {

/// Calls back once, some time after it was armed; on CLOCK_MONOTONIC.
class Timer {
  public:
    explicit Timer(std::function<void()> expired) : expired_(std::move(expired)) {}
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    /// Not armed yet. An Error: the loop takes no timer.
    [[nodiscard]] Result<void> add_to(sd_event* event);
    void arm(std::chrono::microseconds after);
    void disarm();
    [[nodiscard]] bool is_armed() const;

  private:
    static int on_time(sd_event_source*, std::uint64_t, void* userdata);
    std::function<void()> expired_;
    Source source_;
};

} // namespace affinityd::events
