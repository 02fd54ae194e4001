// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/topology/machine_load.hpp"
#include "affinityctl/views/topology/machine_view.hpp"
#include "affinityctl/views/topology/part_names.hpp"
#include "affinityctl/views/topology/picture_layout.hpp"

#include <string>
#include <utility>

namespace affinityctl {

/// How each kind of box is drawn.
struct Look {
    const char* fill;
    const char* stroke;
    double radius, line;
};
[[nodiscard]] Look look_of(Part::Kind kind);

/// How what hangs below a box is drawn.
struct PillLook {
    const char *fill, *stroke, *ink, *faint;
    double radius;
};
[[nodiscard]] PillLook look_of(Hanging::Kind kind);

/// The colour of a policy by its place among the tenants.
[[nodiscard]] const char* color_of(std::size_t tenant);

/// The id of a part's element: "llc-0", "cpu-17".
[[nodiscard]] std::string id_of(const affinityd::topology::Topology& topology, const Part& part);

/// Draws the boxes of a machine that are laid out already.
class Boxes {
  public:
    /// Goes on with `text`, which may become long: it is never copied. The others must outlive this object.
    Boxes(const MachineView& view, const Badges& badges, std::string text)
        : view_(view), badges_(badges), names_(view.topology), loads_(loads_of(view)), out_(std::move(text)) {
    }
    /// A box and all that is inside and below it.
    void draw(const Block& block);
    [[nodiscard]] std::string take() { return std::move(out_); }

  private:
    void rect(const Block& block, const Look& look, const char* more = "");
    void group(const Block& block);
    void core(const Block& block);
    void cpu(const Block& block);
    void claims(const Block& block, const CpuLoad& load);
    [[nodiscard]] std::string cpu_title(unsigned cpu, const std::string& caches, const CpuLoad& load) const;
    void badges(const Block& block, double left);
    void pills(const Block& block);

    const MachineView& view_;
    const Badges& badges_;
    PartNames names_;
    CpuLoads loads_;
    std::string out_;
};

/// How strongly a claim is coloured.
[[nodiscard]] const char* opacity_of(Hold hold);

/// The mark for interrupts.
[[nodiscard]] std::string svg_bolt(double x, double y, const char* color);

} // namespace affinityctl
