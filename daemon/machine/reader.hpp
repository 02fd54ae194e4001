// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "machine/machine.hpp"

#include <string>

namespace affinityd::host {
class Root;
}

namespace affinityd::machine {

/// Topology, interfaces, interrupts and the kernel threads that do their work, linked. An Error if one of
/// them cannot be read: half a machine is no basis for a plan.
[[nodiscard]] Result<Machine> read_machine(const host::Root& root);

} // namespace affinityd::machine
