// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <systemd/sd-event.h>

namespace affinityd::events {

struct SourceUnref {
    void operator()(sd_event_source* source) const { sd_event_source_disable_unref(source); }
};
/// An event source that ends with its owner.
using Source = std::unique_ptr<sd_event_source, SourceUnref>;

struct LoopUnref {
    void operator()(sd_event* event) const { sd_event_unref(event); }
};
using LoopHandle = std::unique_ptr<sd_event, LoopUnref>;

} // namespace affinityd::events
