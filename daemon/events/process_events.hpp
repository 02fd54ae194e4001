// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/manager.hpp"
#include "events/sources.hpp"
#include "host/proc_connector.hpp"

#include <memory>

namespace affinityd::events {

/// Hands the kernel's process events to the manager: exec and renames always, births of threads and exits
/// only while some process is under policy. Lost events become a full pass.
class ProcessEvents {
  public:
    /// Nothing (with a word in the log) where the connector cannot be had: then the periodic pass does all
    /// the work.
    static std::unique_ptr<ProcessEvents> start(sd_event* event, app::Manager& manager, app::Log& log);
    ProcessEvents(app::Manager& manager, host::ProcConnector connector)
        : manager_(manager), connector_(std::move(connector)) {}
    ProcessEvents(const ProcessEvents&) = delete;
    ProcessEvents& operator=(const ProcessEvents&) = delete;

    /// Are births of threads and exits of interest?
    void follow(bool threads);
    /// Do some wait to be handled?
    [[nodiscard]] bool waiting() const { return connector_.has_events(); }

  private:
    static int on_readable(sd_event_source*, int, std::uint32_t, void* userdata);
    void handle(const host::ProcEvent& event);

    app::Manager& manager_;
    host::ProcConnector connector_;
    bool follows_threads_ = false;
    Source source_;
};

} // namespace affinityd::events
