// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/topology/machine_view.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// Something that hangs below a box on a short stem.
struct Pill {
    Hanging what;
    double x = 0, y = 0, width = 0;
};

/// One box of the picture, in pixels. Once it is placed, x and y are those of the picture.
struct Block {
    const Part* part = nullptr;
    std::string title;  ///< "llc 0 (L3 11 MiB)"
    std::string note;   ///< smaller, below the title: "each core: L2 1 MiB, L1d 32 KiB"
    std::string caches; ///< of a core or CPU: its private caches
    double x = 0, y = 0, width = 0, height = 0;
    double below = 0; ///< the space that the pills take below the box
    std::vector<Block> inside;
    std::vector<Pill> pills;
};

constexpr double cpu_width = 40, cpu_height = 34, pill_height = 24, stem = 12;

/// An estimate of a text's width, on the generous side because the font is unknown.
[[nodiscard]] double text_width(const std::string& text, double font_size);

/// All boxes of a machine. The outermost has its corner at x, y; `heading_room` stays free beside each
/// heading. `tree` must outlive the result.
[[nodiscard]] Block lay_out(const affinityd::topology::Topology& topology, const Part& tree,
                            const HangingByPart& hanging, double x, double y, double heading_room);

} // namespace affinityctl
