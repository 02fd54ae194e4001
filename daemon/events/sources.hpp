// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/sd_handles.hpp"

namespace affinityd::events {

/// An event source that ends with its owner.
using Source = host::SdHandle<sd_event_source>;
using LoopHandle = host::SdHandle<sd_event>;

} // namespace affinityd::events
