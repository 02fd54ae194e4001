// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <systemd/sd-bus.h>

namespace affinityd::control {

/// May the caller change things? 1: yes. 0: polkit is being asked; the call comes again with its answer.
/// Negative: no, with `error` set. A peer of the private socket may: connecting to it needed root. On the bus
/// root may, and whom polkit lets.
int check_access(sd_bus_message* call, sd_bus_error* error);

} // namespace affinityd::control
