// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/topology/machine_view.hpp"

#include <string>

namespace affinityctl {

/// The machine as nested boxes, interfaces hanging below their node, CPUs in the colours of the policies that
/// hold them: full where a task is pinned, pale where one may go. A self-contained SVG 1.1 document. Each box
/// has an id (cpu-17, core-5, ...) and a tooltip.
[[nodiscard]] std::string svg_picture(const MachineView& view);

} // namespace affinityctl
