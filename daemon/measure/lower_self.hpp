// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <sys/types.h>

namespace affinityd::measure {

/// What a measuring program does first when a daemon has started it as its child: from then on it dies with
/// `parent` (PR_SET_PDEATHSIG of prctl(2)), is at nice 10, may run on any CPU, has the user nobody if it was
/// root, and no way to new privileges. False if it must not go on: the parent is gone, or the privileges
/// could not be given up. It is the program that does so, and no fork of the daemon: that would copy the
/// daemon's page tables, and cost its loop milliseconds.
[[nodiscard]] bool lower_self(pid_t parent);

/// Every CPU that can exist: what a child must be given so that a daemon that was pinned does not pass that
/// on.
[[nodiscard]] CpuSet everywhere();

} // namespace affinityd::measure
