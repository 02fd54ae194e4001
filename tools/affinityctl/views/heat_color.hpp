// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace affinityctl {

/// The colour of a cell of a map in an SVG document: from white (0) to a blue on which black can be read (1).
[[nodiscard]] std::string heat_color(double share);

} // namespace affinityctl
