// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::topology {

/// Groups of unlike cores: by the kernel's own lists of core types (hybrid x86), else by cpu_capacity (arm64,
/// riscv), else, where cores share second-level caches unevenly, by the size of their first-level caches.
/// Never by frequency: favoured cores of one kind differ in it. Empty: all alike, or not known.
[[nodiscard]] std::vector<Kind> read_kinds(const host::Root& root, const Topology& topology);

} // namespace affinityd::topology
