// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <systemd/sd-bus.h>
#include <systemd/sd-device.h>
#include <systemd/sd-event.h>

namespace affinityd::host {

/// Owners of libsystemd's objects. Whoever includes this links the library.
struct SdRelease {
    void operator()(sd_event* event) const { sd_event_unref(event); }
    void operator()(sd_event_source* source) const { sd_event_source_disable_unref(source); }
    void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
    void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
    void operator()(sd_bus_slot* slot) const { sd_bus_slot_unref(slot); }
    void operator()(sd_device_monitor* monitor) const { sd_device_monitor_unref(monitor); }
};
template <class Object>
using SdHandle = std::unique_ptr<Object, SdRelease>;

} // namespace affinityd::host
