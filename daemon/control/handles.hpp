// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/release.hpp"

#include <memory>

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

namespace affinityd::control {

/// A connection, closed without a flush: a flush waits for a peer that does not read.
using Bus = std::unique_ptr<sd_bus, Release<sd_bus_close_unref>>;
using Message = std::unique_ptr<sd_bus_message, Release<sd_bus_message_unref>>;
/// A pending call or a subscription, which ends with its owner.
using Slot = std::unique_ptr<sd_bus_slot, Release<sd_bus_slot_unref>>;
/// An event source, which ends with its owner.
using Source = std::unique_ptr<sd_event_source, Release<sd_event_source_disable_unref>>;

/// Calls `end` when the loop is about to end, before sd-bus flushes the connections that are attached to it:
/// a flush waits for a peer that does not answer, up to 90 s for one that has not authenticated itself. 0 or
/// a negative errno value.
inline int before_flush(sd_event* event, sd_event_handler_t end, void* userdata, Source& into) {
    sd_event_source* source = nullptr;
    int status = sd_event_add_exit(event, &source, end, userdata);
    if (status >= 0) status = sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);
    into.reset(source);
    return status;
}

} // namespace affinityd::control
