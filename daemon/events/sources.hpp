// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <systemd/sd-device.h>
#include <systemd/sd-event.h>

namespace affinityd::events {

/// Releases libsystemd's objects.
struct SdRelease {
    void operator()(sd_event* event) const { sd_event_unref(event); }
    void operator()(sd_event_source* source) const { sd_event_source_disable_unref(source); }
    void operator()(sd_device_monitor* monitor) const { sd_device_monitor_unref(monitor); }
};
/// An event source that ends with its owner.
using Source = std::unique_ptr<sd_event_source, SdRelease>;
using LoopHandle = std::unique_ptr<sd_event, SdRelease>;
using DeviceMonitor = std::unique_ptr<sd_device_monitor, SdRelease>;

/// Calls back whenever a descriptor is readable.
class Descriptor {
  public:
    explicit Descriptor(std::function<void()> ready) : ready_(std::move(ready)) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    /// `fd` must outlive this; -1: it never is readable, as where the kernel had no descriptor left. An
    /// Error: the loop does not watch it. `what`: for that.
    [[nodiscard]] Result<void> add_to(sd_event* event, int fd, const char* what);
    void end() { source_.reset(); }

  private:
    static int on_ready(sd_event_source*, int, std::uint32_t, void* userdata);
    std::function<void()> ready_;
    Source source_;
};

/// Calls back once, some time after it was armed.
class Timer {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr auto never = Clock::time_point::max();
    explicit Timer(std::function<void()> expired) : expired_(std::move(expired)) {}
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    /// Not armed yet. An Error: the loop takes no timer.
    [[nodiscard]] Result<void> add_to(sd_event* event);
    void arm(std::chrono::microseconds after);
    /// At that time, or `never`. The time that it is armed for already changes nothing.
    void arm_at(Clock::time_point due);
    void disarm();
    [[nodiscard]] bool is_armed() const { return due_ != never; }
    [[nodiscard]] Clock::time_point due() const { return due_; } ///< `never`: it is not armed

  private:
    static int on_time(sd_event_source*, std::uint64_t, void* userdata);
    std::function<void()> expired_;
    Source source_;
    Clock::time_point due_ = never;
};

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
    void add_to(sd_event* event, std::int64_t priority) {
        event_ = event;
        priority_ = priority;
    }
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
