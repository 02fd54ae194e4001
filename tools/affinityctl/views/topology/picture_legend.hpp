// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/topology/machine_view.hpp"

#include <string>

namespace affinityctl {

/// What the colours and marks of the picture mean, one line each.
class Legend {
  public:
    /// Draws the lines from the point x, y downwards. The view must outlive this object.
    Legend(const MachineView& view, double x, double y);
    [[nodiscard]] const std::string& text() const { return out_; }
    [[nodiscard]] double right() const { return right_; }  ///< where the widest line ends
    [[nodiscard]] double bottom() const { return y_ - 8; } ///< where the last line ends

  private:
    void line(const std::string& strong, const std::string& rest);
    void swatch(const char* fill, const char* opacity, const char* stroke, const char* more = "");
    void tenants();
    void shades();
    void sets();

    const MachineView& view_;
    double x_, y_;
    double right_ = 0;
    std::string out_;
};

} // namespace affinityctl
