// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace affinityctl {

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
