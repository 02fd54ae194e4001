// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/manager.hpp"
#include "events/sources.hpp"
#include "host/proc_source.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace affinityd::events {

/// Hands the kernel's process events to the manager: execs and renames always, births of threads and exits
/// only while some process is under policy. Lost events become a full pass. A socket that breaks is opened
/// again, with a pause that grows from one second to a minute; the full pass that follows covers the gap.
class ProcessEvents {
  public:
    using Open = std::function<Result<std::unique_ptr<host::ProcSource>>(host::ProcSource::Wanted)>;
    struct Options {
        Open open{};                                 ///< default: the kernel's connector
        std::chrono::milliseconds first_pause{1000}; ///< before a broken source is opened again
    };
    /// No value (with a warning in the log) where the source cannot be opened at all: then the periodic pass
    /// does all the work.
    static std::unique_ptr<ProcessEvents> start(sd_event* event, app::Manager& manager, app::Log& log,
                                                Options options);
    static std::unique_ptr<ProcessEvents> start(sd_event* event, app::Manager& manager, app::Log& log) {
        return start(event, manager, log, Options{});
    }
    ProcessEvents(sd_event* event, app::Manager& manager, app::Log& log, Options options)
        : event_(event), manager_(manager), log_(log), options_(std::move(options)),
          pause_(options_.first_pause) {}
    ProcessEvents(const ProcessEvents&) = delete;
    ProcessEvents& operator=(const ProcessEvents&) = delete;

    /// Are births of threads and exits of interest?
    void follow(bool threads);
    /// True if some events wait to be handled.
    [[nodiscard]] bool waiting() const { return events_ && !reopen_timer_ && events_->has_events(); }

  private:
    static int on_readable(sd_event_source*, int, std::uint32_t events, void* userdata);
    static int on_rest(sd_event_source*, void* userdata);
    static int on_reopen(sd_event_source*, std::uint64_t, void* userdata);
    [[nodiscard]] Result<void> open();
    void take();
    void handle(const host::ProcEvent& event);
    /// Stops reading from the source, which is closed and opened again later.
    void break_off(const std::string& reason);
    void reopen_later();

    sd_event* event_;
    app::Manager& manager_;
    app::Log& log_;
    Options options_;
    std::unique_ptr<host::ProcSource> events_;
    bool follows_threads_ = false;
    std::chrono::milliseconds pause_; ///< before the next attempt
    std::chrono::steady_clock::time_point opened_at_;
    Source readable_;
    Source rest_; ///< armed while events wait in memory, which the descriptor does not show
    Source reopen_timer_;
};

} // namespace affinityd::events
