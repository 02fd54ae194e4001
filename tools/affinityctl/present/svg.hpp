// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityctl {

/// Sentences as lines of a picture, each begun anew; none is wider than `width` pixels in letters of `size`.
/// Line ends within a sentence stay.
[[nodiscard]] std::vector<std::string> note_lines(std::span<const std::string> sentences, double width,
                                                  double size);

/// Any bytes as text of an XML element: markup is escaped, and what XML forbids or a viewer would act upon is
/// written as its number (base/escape.hpp).
[[nodiscard]] std::string xml_text(std::string_view text);

/// A <text> element; `more` holds further attributes.
[[nodiscard]] std::string svg_text(double x, double y, double size, std::string_view color,
                                   std::string_view text, std::string_view more = {});

struct StyledText {
    double size = 10;
    std::string_view color;
    std::string_view text;
};

/// One line whose first part is bold.
[[nodiscard]] std::string svg_two_texts(double x, double y, const StyledText& strong, const StyledText& rest);

/// A <title> element, which viewers show as a tooltip of its parent.
[[nodiscard]] std::string svg_title(std::string_view text);

} // namespace affinityctl
