// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"

namespace affinityd::host {
class Root;
}

namespace affinityd::machine {

/// Finds the kernel threads that do the work of queues and interrupts (threaded NAPI, irq/N-name) and notes
/// them at these. They are children of kthreadd, which lists them in one file (CONFIG_PROC_CHILDREN,
/// proc(5)); without it every process is looked at.
void attach_kernel_threads(const host::Root& root, Machine& machine);

} // namespace affinityd::machine
