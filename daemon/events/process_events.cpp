// SPDX-License-Identifier: Apache-2.0
#include "events/process_events.hpp"

#include "host/proc_connector.hpp"

#include <algorithm>
#include <system_error>

#include <sys/epoll.h>

namespace affinityd::events {

namespace {

using host::ProcEvent;
using host::ProcSource;
using std::chrono::steady_clock;

constexpr std::chrono::seconds longest_pause{60};
constexpr std::chrono::milliseconds slice{2}; ///< after which other work has its turn

Result<std::unique_ptr<ProcSource>> open_connector(ProcSource::Wanted wanted) {
    auto connector = host::ProcConnector::open(wanted);
    if (!connector) return std::unexpected(connector.error());
    return std::unique_ptr<ProcSource>(std::move(*connector));
}

ProcSource::Wanted wanted_events(bool threads) {
    return {.thread_forks = threads, .process_forks = threads, .exits = threads, .thread_exits = threads};
}

} // namespace

std::unique_ptr<ProcessEvents> ProcessEvents::start(sd_event* event, app::Manager& manager, app::Log& log,
                                                    Options options) {
    if (!options.open) options.open = open_connector;
    auto events = std::make_unique<ProcessEvents>(event, manager, log, std::move(options));
    if (auto opened = events->open(); !opened) {
        log.warn("no process events, new processes are found by the periodic pass only: " +
                 opened.error().to_string());
        return nullptr;
    }
    return events;
}

Result<void> ProcessEvents::open() {
    auto opened = options_.open(wanted_events(follows_threads_));
    if (!opened) return std::unexpected(opened.error());
    sd_event_source* source = nullptr;
    int status = sd_event_add_io(event_, &source, (*opened)->fd(), EPOLLIN, on_readable, this);
    if (status < 0) return fail("the loop does not take process events", {}, -status);
    readable_.reset(source);
    sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);
    source = nullptr;
    status = sd_event_add_defer(event_, &source, on_rest, this);
    if (status < 0) return fail("the loop does not take process events", {}, -status);
    rest_.reset(source);
    sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);
    sd_event_source_set_enabled(source, SD_EVENT_OFF);
    events_ = std::move(*opened);
    opened_at_ = steady_clock::now();
    return {};
}

void ProcessEvents::follow(bool threads) {
    if (threads == follows_threads_) return;
    follows_threads_ = threads;
    if (!events_ || reopen_timer_) return; // the new source is opened with it
    if (auto set = events_->set_filter(wanted_events(threads)); !set) break_off(set.error().to_string());
}

void ProcessEvents::handle(const ProcEvent& event) {
    switch (event.kind) {
    case ProcEvent::Kind::exec:
        manager_.tasks().process_changed(event.pid);
        break;
    case ProcEvent::Kind::comm:
        if (event.is_thread())
            manager_.tasks().thread_renamed(event.pid, event.tid, event.comm());
        else
            manager_.tasks().process_changed(event.pid);
        break;
    case ProcEvent::Kind::fork:
        if (event.is_thread())
            manager_.tasks().thread_changed(event.pid, event.tid);
        else if (manager_.tasks().table().find(event.parent_pid) != nullptr)
            manager_.tasks().process_changed(event.pid, event.parent_pid);
        break;
    case ProcEvent::Kind::exit:
        manager_.tasks().task_gone(event.pid, event.tid);
        break;
    }
    if (!follows_threads_ && !manager_.tasks().table().processes().empty()) {
        follow(true);
        // Threads that the first process under policy made before births were reported: a pass finds them.
        manager_.work().want(app::Work::Urgency::soon);
    }
}

void ProcessEvents::take() {
    const auto end = steady_clock::now() + slice;
    const auto drained = events_->drain([&](const ProcEvent& event) { handle(event); },
                                        [&] { return steady_clock::now() >= end; });
    if (drained.lost) manager_.events_lost();
    if (drained.error != 0)
        break_off(std::generic_category().message(drained.error));
    else if (drained.more && !reopen_timer_)
        sd_event_source_set_enabled(rest_.get(), SD_EVENT_ONESHOT);
}

void ProcessEvents::break_off(const std::string& reason) {
    if (reopen_timer_) return;
    // A descriptor that stays readable would keep the loop spinning. The source itself goes later:
    // this may be called from within its drain().
    sd_event_source_set_enabled(readable_.get(), SD_EVENT_OFF);
    sd_event_source_set_enabled(rest_.get(), SD_EVENT_OFF);
    if (steady_clock::now() - opened_at_ > longest_pause) pause_ = options_.first_pause;
    log_.warn("process events broke off and are subscribed to again after a pause: " + reason);
    reopen_later();
}

void ProcessEvents::reopen_later() {
    sd_event_source* timer = nullptr;
    const auto wait = std::chrono::duration_cast<std::chrono::microseconds>(pause_);
    pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, longest_pause);
    if (sd_event_add_time_relative(event_, &timer, CLOCK_MONOTONIC, static_cast<std::uint64_t>(wait.count()),
                                   0, on_reopen, this) < 0) {
        log_.error("no process events any more: the loop takes no timer");
        return;
    }
    reopen_timer_.reset(timer);
}

int ProcessEvents::on_readable(sd_event_source*, int, std::uint32_t events, void* userdata) {
    auto* self = static_cast<ProcessEvents*>(userdata);
    self->take();
    if ((events & EPOLLHUP) != 0) self->break_off("the socket hung up");
    return 0;
}

int ProcessEvents::on_rest(sd_event_source*, void* userdata) {
    static_cast<ProcessEvents*>(userdata)->take();
    return 0;
}

int ProcessEvents::on_reopen(sd_event_source*, std::uint64_t, void* userdata) {
    auto* self = static_cast<ProcessEvents*>(userdata);
    self->reopen_timer_.reset();
    self->readable_.reset(); // before its descriptor
    self->events_.reset();
    if (auto opened = self->open(); !opened) {
        self->log_.warn("process events cannot be subscribed to: " + opened.error().to_string());
        self->reopen_later();
        return 0;
    }
    self->log_.info("process events are subscribed to again");
    self->manager_.events_lost(); // whatever happened meanwhile
    return 0;
}

} // namespace affinityd::events
