// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"

namespace affinityd::machine {

/// Notes the machine's kernel threads at the queues and interrupts whose work they do: threaded NAPI,
/// irq/N-name.
void attach_kernel_threads(Machine& machine);

} // namespace affinityd::machine
