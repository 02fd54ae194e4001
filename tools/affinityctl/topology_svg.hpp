// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine_view.hpp"

#include <string>

namespace affinityctl {

/// The machine as boxes in boxes, interfaces hanging at their node, CPUs in the colours of the policies that
/// hold them: full where somebody is pinned, pale where a policy may go. One SVG 1.1 document without
/// anything from outside; each box has an id (cpu-17, core-5, ...) and tells more when pointed at.
[[nodiscard]] std::string svg_picture(const MachineView& view);

} // namespace affinityctl
