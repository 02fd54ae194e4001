// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/heat_color.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace affinityctl {

std::string heat_color(double share) {
    const auto between = [&](double from, double to) {
        return static_cast<int>(std::lround(from + (to - from) * std::clamp(share, 0.0, 1.0)));
    };
    return fmt::format("#{:02x}{:02x}{:02x}", between(247, 90), between(251, 165), between(255, 215));
}

} // namespace affinityctl
