// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace affinityctl {

/// What the parts of the picture of the models have in common. Pixels.
inline constexpr double models_page = 1080, models_margin = 90;

/// The colour of a model by its place in the report; most colour-blind people can tell these apart, and the
/// first four keep their order of brightness in grey.
[[nodiscard]] constexpr std::string_view model_color(std::size_t place) {
    constexpr std::array<std::string_view, 8> colors{"#8c8c8c", "#0072b2", "#e69f00", "#009e73",
                                                     "#cc79a7", "#56b4e9", "#d55e00", "#333333"};
    return colors[place % colors.size()];
}

} // namespace affinityctl
