// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/picture.hpp"

#include "affinityctl/views/svg_text.hpp"
#include "affinityctl/views/topology/machine_load.hpp"
#include "affinityctl/views/topology/part_names.hpp"
#include "affinityctl/views/topology/picture_boxes.hpp"
#include "affinityctl/views/topology/picture_layout.hpp"
#include "affinityctl/views/topology/picture_legend.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityctl {

namespace {

constexpr double margin = 28, headline = 76;
constexpr double badge_room = 64; ///< for "12 tasks" beside a heading
constexpr double least_width = 460;

std::string head_of(const MachineView& view, double width, double height) {
    std::string head = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} {1:.0f}\" "
        "font-family=\"Inter, 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif\">\n"
        "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\">"
        "<rect width=\"1.6\" height=\"6\" fill=\"#20262e\" fill-opacity=\"0.28\"/></pattern></defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        width, height);
    head +=
        svg_text(margin, 38, 19, "#1c222b", view.name.empty() ? "machine" : view.name, "font-weight=\"700\"");
    std::string under = machine_summary(view.topology);
    if (!view.occupancy.tenants.empty()) under += "; who is where, " + view.occupancy.source;
    head += svg_text(margin, 56, 11.5, "#5a6573", under);
    return head;
}

} // namespace

std::string svg_picture(const MachineView& view) {
    const auto nested = nest(view.topology);
    const auto hanging = hang_up(view, nested.machine);
    const Block top = lay_out(view.topology, nested.machine, hanging, margin, headline,
                              view.occupancy.tenants.empty() ? 0 : badge_room);
    const auto badges = badges_of(view, nested.machine);
    const Legend legend(view, margin, top.y + top.height + top.below + 30);
    const double right = std::max(legend.right(), top.x + top.width);
    Boxes boxes(view, badges, head_of(view, std::max(right + margin, least_width), legend.bottom() + margin));
    boxes.draw(top);
    return boxes.take() + legend.text() + "</svg>\n";
}

} // namespace affinityctl
