// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace affinityctl {

class Svg;

inline constexpr double note_leading = 17; ///< from one line of notes to the next, pixels

/// Sentences as lines of a picture, each begun anew; none is wider than `width` pixels in letters of `size`.
/// Line ends within a sentence stay.
[[nodiscard]] std::vector<std::string> note_lines(std::span<const std::string> sentences, double width,
                                                  double size);

/// Draws them below `y`; where the last one stands.
double draw_notes(Svg& svg, double x, double y, std::span<const std::string> lines, double size);

} // namespace affinityctl
