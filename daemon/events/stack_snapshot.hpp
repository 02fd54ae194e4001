// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <ctime>

namespace affinityd::events {

/// Where this thread is when something takes longer than it should: a timer's signal writes down its stack
/// after a time (timer_create(2), SIGRTMIN). For builds for tests only; one at a time in a process.
class StackSnapshot {
  public:
    StackSnapshot() = default;
    StackSnapshot(const StackSnapshot&) = delete;
    StackSnapshot& operator=(const StackSnapshot&) = delete;
    ~StackSnapshot();

    /// Of the thread that calls; `after`: above 0. Without a timer there is never a stack.
    void prepare(std::chrono::nanoseconds after);
    void begin();
    void end();
    /// The stack after the last begin(), to stderr, an address a line (addr2line(1)); none: it did not take
    /// so long.
    void print() const;

  private:
    void set(std::chrono::nanoseconds left);
    timer_t timer_{};
    bool has_timer_ = false;
    std::chrono::nanoseconds after_{0};
};

} // namespace affinityd::events
