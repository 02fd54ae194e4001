// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace affinityctl {

/// Any bytes as text inside an XML element: markup escaped, what XML may not hold as '?'.
[[nodiscard]] std::string xml_text(std::string_view text);

/// A <text> element; `more` holds further attributes.
[[nodiscard]] std::string svg_text(double x, double y, double size, std::string_view color,
                                   std::string_view text, std::string_view more = {});

struct StyledText {
    double size = 10;
    std::string_view color;
    std::string_view text;
};

/// One line of which the first part is bold.
[[nodiscard]] std::string svg_two_texts(double x, double y, const StyledText& strong, const StyledText& rest);

/// A <title> element: what is shown when somebody points at the element it stands in.
[[nodiscard]] std::string svg_title(std::string_view text);

} // namespace affinityctl
