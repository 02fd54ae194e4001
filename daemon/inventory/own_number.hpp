// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <optional>

namespace affinityd::inventory {

/// The thread of a process that its own pid namespace, as a container has one, knows by the number `own`; no
/// value: it has none, or ended meanwhile, or is one of very many. Threads are numbered in the order of their
/// births here and there: it is looked for by halves, and among the latest 64 if numbers began anew since. Of
/// a process with more than 1024 threads the first of these are looked at. Takes a millisecond at most.
[[nodiscard]] std::optional<int> thread_by_own_number(const host::Root& root, int pid, int own);

} // namespace affinityd::inventory
