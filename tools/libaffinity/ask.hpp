// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/join_wire.h"

namespace libaffinity {

/// Sends one request over a connection of its own and waits for the reply, 0.4 s at most. As the functions of
/// affinity.h: 1, 0 (there is no daemon), or a negative errno value. `reply` is what the daemon has answered,
/// and all 0 where it has not, or where its answer makes no sense (-EPROTO). No exceptions, no state, nothing
/// but libc.
int ask(affinityd_join_wish wish, const char* slot, int cpu, affinityd_join_reply& reply);

} // namespace libaffinity
