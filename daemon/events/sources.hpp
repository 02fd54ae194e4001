// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

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

} // namespace affinityd::events
