// SPDX-License-Identifier: Apache-2.0
#include "events/process_events.hpp"

namespace affinityd::events {

using host::ProcEvent;

std::unique_ptr<ProcessEvents> ProcessEvents::start(sd_event* event, app::Manager& manager, app::Log& log) {
    auto connector = host::ProcConnector::open();
    if (!connector) {
        log.warn("no process events, new processes are found by the periodic pass only: " +
                 connector.error().to_string());
        return nullptr;
    }
    auto events = std::make_unique<ProcessEvents>(manager, std::move(*connector));
    sd_event_source* source = nullptr;
    if (const int status =
            sd_event_add_io(event, &source, events->connector_.fd(), EPOLLIN, on_readable, events.get());
        status < 0) {
        log.warn("no process events: the loop does not take them");
        return nullptr;
    }
    events->source_.reset(source);
    sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);
    return events;
}

void ProcessEvents::follow(bool threads) {
    if (threads == follows_threads_) return;
    follows_threads_ = threads;
    connector_.set_filter(
        {.thread_forks = threads, .process_forks = threads, .exits = threads, .thread_exits = threads});
}

void ProcessEvents::handle(const ProcEvent& event) {
    switch (event.kind) {
    case ProcEvent::Kind::exec:
        manager_.process_changed(event.pid);
        break;
    case ProcEvent::Kind::comm:
        if (event.is_thread())
            manager_.thread_renamed(event.pid, event.tid, event.comm());
        else
            manager_.process_changed(event.pid);
        break;
    case ProcEvent::Kind::fork:
        if (event.is_thread())
            manager_.thread_changed(event.pid, event.tid);
        else if (manager_.is_known(event.parent_pid))
            manager_.process_changed(event.pid, event.parent_pid);
        break;
    case ProcEvent::Kind::exit:
        manager_.task_gone(event.pid, event.tid);
        break;
    }
    if (manager_.has_processes()) follow(true);
}

int ProcessEvents::on_readable(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto* events = static_cast<ProcessEvents*>(userdata);
    const auto drained = events->connector_.drain([&](const ProcEvent& event) { events->handle(event); });
    if (drained.lost) events->manager_.events_lost();
    return 0;
}

} // namespace affinityd::events
