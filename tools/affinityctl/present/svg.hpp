// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace affinityctl {

/// Most colour-blind people can tell these apart, and white figures are readable on each.
inline constexpr std::array svg_palette{"#2867c6", "#d9601a", "#1d8a5b", "#a83f97",
                                        "#b38600", "#12839c", "#c5323f", "#6549c9"};
/// The colours of texts.
inline constexpr const char *svg_ink = "#1c222b", *svg_faint = "#5a6573";

/// Any bytes as text of an XML element: markup is escaped, and what XML forbids or a viewer would act upon is
/// written as its number (base/escape.hpp).
[[nodiscard]] std::string xml_text(std::string_view text);

// Elements; `more` holds further attributes. Sizes and places in pixels.
[[nodiscard]] std::string svg_text(double x, double y, double size, std::string_view color,
                                   std::string_view text, std::string_view more = {});
[[nodiscard]] std::string svg_rect(double x, double y, double width, double height, std::string_view fill,
                                   std::string_view more = {});
/// Other elements, moved.
[[nodiscard]] std::string svg_at(double x, double y, std::string_view elements);

} // namespace affinityctl
