// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
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

/// An SVG document that grows by calls. Coordinates in pixels from the top left; text may be any bytes.
class Svg {
  public:
    Svg(double width, double height, std::string_view title);
    enum class Anchor { start, middle, end };
    void text(double x, double y, std::string_view text, double size = 13, Anchor anchor = Anchor::start);
    void rect(double x, double y, double width, double height, std::string_view color);
    void line(double x1, double y1, double x2, double y2, std::string_view color, double width = 1);
    void circle(double x, double y, double radius, std::string_view color);
    /// The whole document; the last call.
    [[nodiscard]] std::string finish();

  private:
    std::string text_;
};

} // namespace affinityctl
