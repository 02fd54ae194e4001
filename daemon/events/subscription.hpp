// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "base/error.hpp"
#include "events/sources.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace affinityd::events {

/// A source of messages that the loop reads. One that breaks is opened again, with a pause that grows from
/// one second to a minute: until then the loop does not look at it, so that it does not spin.
class Subscription {
  public:
    struct Parts {
        std::string what;                   ///< it tells of, for the log
        std::function<Result<int>()> open;  ///< opens the source in place of the one before; its descriptor
        std::function<Result<void>()> read; ///< handles what is there; an Error: the source is broken
        std::function<void()> missed;       ///< it is open again: what happened meanwhile is not known
        std::chrono::milliseconds first_pause{1000};
        std::int64_t priority = SD_EVENT_PRIORITY_NORMAL; ///< of its messages
    };
    /// References, and what `parts` refers to, must outlive it.
    Subscription(sd_event* event, app::Log& log, Parts parts)
        : event_(event), log_(log), parts_(std::move(parts)), pause_(parts_.first_pause) {}
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

    /// Opens the source for the first time. After an Error it is not tried again.
    [[nodiscard]] Result<void> start();

    /// Its messages are of no use now, and the source may be closed. resume() opens it again.
    void pause();
    void resume();

    /// Of its messages, until it is opened again.
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
    void reopen_later();
    void reopen();

    sd_event* event_;
    app::Log& log_;
    Parts parts_;
    std::chrono::milliseconds pause_; ///< before the next attempt
    std::chrono::steady_clock::time_point opened_at_;
    bool is_broken_ = false;
    Timer timer_{[this] { reopen(); }};
    Source readable_;
};

} // namespace affinityd::events
