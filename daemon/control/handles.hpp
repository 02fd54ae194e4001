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

} // namespace affinityd::control
