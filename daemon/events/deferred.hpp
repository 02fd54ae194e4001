// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "events/sources.hpp"

#include <cstdint>
#include <functional>
#include <utility>

namespace affinityd::events {

/// Calls back once when nothing more important is to be done. Those that are as important have their turns in
/// the order in which they began to wait: a defer source of sd-event that is kept counts as waiting since it
/// was made, and so comes before every descriptor of its priority, again and again. Here each wait has one of
/// its own.
class Deferred {
  public:
    explicit Deferred(std::function<void()> turn) : turn_(std::move(turn)) {}
    Deferred(const Deferred&) = delete;
    Deferred& operator=(const Deferred&) = delete;

    /// Not armed yet. `event` must outlive this. `priority`: of sd_event_source_set_priority(3).
    void add_to(sd_event* event, std::int64_t priority);
    /// Nothing happens if it is armed.
    void arm();
    [[nodiscard]] bool is_armed() const { return waiting_ != nullptr; }
    void set_priority(std::int64_t priority);

  private:
    static int on_turn(sd_event_source*, void* userdata);
    std::function<void()> turn_;
    sd_event* event_ = nullptr;
    std::int64_t priority_ = 0;
    Source waiting_;
};

} // namespace affinityd::events
