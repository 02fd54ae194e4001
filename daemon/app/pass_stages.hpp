// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/bookkeeping.hpp"
#include "app/latency_source.hpp"
#include "app/log.hpp"
#include "app/sequence.hpp"
#include "app/steering.hpp"
#include "app/world.hpp"
#include "inventory/facts.hpp"
#include "state/journal.hpp"

#include <functional>
#include <string>

namespace affinityd::app {

// Stages of a pass that belong to none of its ways. References must outlive the stages.

/// Reads the hardware again, in steps, if `wanted` says so when the stage begins; `wanted` is cleared,
/// unless that fails. What events bring in meanwhile is younger, and stays.
[[nodiscard]] Sequence::Stage reread_machine(const host::Root& root, Current& current, bool& wanted,
                                             Log& log);

/// Reads one interface again, in steps.
[[nodiscard]] Sequence::Stage reread_nic(const host::Root& root, Current& current, const std::string& nic,
                                         Log& log);

/// Asks interfaces again that could not say how many queues they have.
void reread_channels(const host::Root& root, Current& current);

/// Waits for the first list of listeners on the ports that policies ask for, for a bounded time: who is
/// matched before that is looked at again.
[[nodiscard]] Sequence::Stage await_listeners(inventory::FactSources& sources);

/// Gets latencies that were measured since, for policies that ask for them.
[[nodiscard]] Sequence::Stage learn_latencies(LatencySource& source, const Current& current,
                                              const std::string& state_dir);

/// Writes the undo journal anew if it was removed or cut, and logs what is newly wrong with it.
[[nodiscard]] Sequence::Stage look_after_journal(state::Journal& journal, Log& log);

/// Learns which interface serves which process; `changed` is called if the placements are others for it.
[[nodiscard]] Sequence::Stage learn_nic_usage(Bookkeeping& bookkeeping, const Steering& steering,
                                              std::function<void()> changed);

} // namespace affinityd::app
