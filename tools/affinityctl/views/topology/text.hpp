// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/topology/machine_view.hpp"

#include <string>

namespace affinityctl {

/// What holds what, one line each as in lstopo's text, with what hangs at it and what is pinned there;
/// then what has no place in a tree: distances, offline and isolated CPUs, kinds of cores. Numbers are those
/// of CPU-set expressions.
[[nodiscard]] std::string tree_text(const MachineView& view, bool color);

/// One line per CPU that is present, offline ones last, as in `lscpu -e`.
[[nodiscard]] std::string table_text(const MachineView& view, bool color);

} // namespace affinityctl
