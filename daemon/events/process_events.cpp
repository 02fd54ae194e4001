// SPDX-License-Identifier: Apache-2.0
#include "events/process_events.hpp"

#include "host/proc_connector.hpp"

#include <system_error>

namespace affinityd::events {

namespace {

using host::ProcEvent;
using host::ProcSource;
using std::chrono::steady_clock;

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

ProcessEvents::ProcessEvents(sd_event* event, app::Manager& manager, app::Log& log, Options options)
    : manager_(manager), open_(options.open ? std::move(options.open) : open_connector),
      subscription_(event, log,
                    {.what = "process events",
                     .open = [this] { return open(); },
                     .read = [this] { return take(); },
                     .missed = [this] { manager_.events_lost(); },
                     .first_pause = options.first_pause,
                     .priority = SD_EVENT_PRIORITY_IMPORTANT}) {}

std::unique_ptr<ProcessEvents> ProcessEvents::start(sd_event* event, app::Manager& manager, app::Log& log,
                                                    Options options) {
    auto events = std::make_unique<ProcessEvents>(event, manager, log, std::move(options));
    if (auto begun = events->begin(event); !begun) {
        log.warn("no process events, new processes are found by the periodic pass only: " +
                 begun.error().to_string());
        return nullptr;
    }
    return events;
}

Result<void> ProcessEvents::begin(sd_event* event) {
    sd_event_source* source = nullptr;
    const int status = sd_event_add_defer(event, &source, on_rest, this);
    if (status < 0) return fail("the loop does not take process events", {}, -status);
    rest_.reset(source);
    sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);
    sd_event_source_set_enabled(source, SD_EVENT_OFF);
    return subscription_.start();
}

Result<int> ProcessEvents::open() {
    events_.reset();
    auto opened = open_(wanted_events(follows_threads_));
    if (!opened) return std::unexpected(opened.error());
    events_ = std::move(*opened);
    return events_->fd();
}

void ProcessEvents::follow(bool threads) {
    if (threads == follows_threads_) return;
    follows_threads_ = threads;
    if (!events_ || subscription_.is_broken()) return; // the new source is opened with it
    if (auto set = events_->set_filter(wanted_events(threads)); !set)
        subscription_.break_off(set.error().to_string());
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

Result<void> ProcessEvents::take() {
    const auto end = steady_clock::now() + slice;
    const auto drained = events_->drain([&](const ProcEvent& event) { handle(event); },
                                        [&] { return steady_clock::now() >= end; });
    if (drained.lost) manager_.events_lost();
    if (drained.error != 0) return fail(std::generic_category().message(drained.error));
    if (drained.more) sd_event_source_set_enabled(rest_.get(), SD_EVENT_ONESHOT);
    return {};
}

int ProcessEvents::on_rest(sd_event_source*, void* userdata) {
    auto& self = *static_cast<ProcessEvents*>(userdata);
    if (self.subscription_.is_broken()) return 0;
    if (const auto taken = self.take(); !taken) self.subscription_.break_off(taken.error().to_string());
    return 0;
}

} // namespace affinityd::events
