// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "base/release.hpp"
#include "core/log.hpp"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <systemd/sd-event.h>

namespace affinityd::events {

/// An event source that ends with its owner.
using Source = std::unique_ptr<sd_event_source, Release<sd_event_source_disable_unref>>;
using LoopHandle = std::unique_ptr<sd_event, Release<sd_event_unref>>;

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
    [[nodiscard]] Result<void> add_to(sd_event* event, clockid_t clock = CLOCK_MONOTONIC);
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

/// Calls back once when nothing more important is to be done. Sources that are as important have their turns
/// in the order in which they began to wait: a defer source of sd-event that is kept counts as waiting since
/// it was made, and so comes before every descriptor of its priority, again and again. Here each wait has a
/// source of its own.
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

/// A source of messages that the loop reads. A broken source is opened again, with a pause that grows from
/// one second to a minute: until then the loop does not look at it, so that it does not spin.
class Subscription {
  public:
    struct Parts {
        std::string what;                   ///< it tells of, for the log
        std::function<Result<int>()> open;  ///< opens the source in place of the one before; its descriptor
        std::function<Result<void>()> read; ///< handles what is there; an Error: the source is broken
        std::function<void()> missed;       ///< it is open again: what happened meanwhile is not known
        std::int64_t priority = SD_EVENT_PRIORITY_NORMAL; ///< of its messages
    };
    /// References, and what `parts` refers to, must outlive it.
    Subscription(sd_event* event, core::Log& log, Parts parts)
        : event_(event), log_(log), parts_(std::move(parts)) {}
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

    /// Opens the source for the first time. After an Error it is not tried again.
    [[nodiscard]] Result<void> start();

    /// Messages are of no use now, and the source may be closed. resume() opens it again.
    void pause();
    void resume();

    /// The priority of its messages, until it is opened again.
    void set_priority(std::int64_t priority) const {
        if (readable_) sd_event_source_set_priority(readable_.get(), priority);
    }
    /// Stops reading; the source is opened again later. Nothing happens if it is broken already. May be
    /// called while `read` runs: the source is kept until it is opened again.
    void break_off(const std::string& reason);
    /// True from the moment it breaks until it is open again.
    [[nodiscard]] bool is_broken() const { return is_broken_; }

  private:
    static int on_readable(sd_event_source*, int, std::uint32_t events, void* userdata);
    [[nodiscard]] Result<void> open();
    [[nodiscard]] bool try_to_open();
    void reopen_later();
    void reopen();

    sd_event* event_;
    core::Log& log_;
    Parts parts_;
    std::chrono::milliseconds pause_{1000}; ///< before the next attempt
    std::chrono::steady_clock::time_point opened_at_;
    bool is_broken_ = false;
    Timer timer_{[this] { reopen(); }};
    Source readable_;
};

} // namespace affinityd::events
