// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/picture.hpp"

#include "affinityctl/present/svg.hpp"
#include "affinityctl/views/topology/cpu_list.hpp"
#include "affinityctl/views/topology/machine_load.hpp"
#include "affinityctl/views/topology/machine_view.hpp"
#include "affinityctl/views/topology/part_names.hpp"
#include "affinityctl/views/topology/picture_boxes.hpp"
#include "affinityctl/views/topology/picture_layout.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

namespace affinityctl {

namespace {

/// Meaning of the colours and marks of the picture, one line each.
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

constexpr double line_height = 22;
constexpr const char* dark = "#1c222b";

std::string shortened(std::string text) {
    constexpr std::size_t most = 120;
    if (text.size() <= most) return text;
    text.resize(most);
    return text + "...";
}

Legend::Legend(const MachineView& view, double x, double y) : view_(view), x_(x), y_(y) {
    tenants();
    sets();
    for (const auto& remark : view.occupancy.remarks)
        line("note", shortened(remark));
}

void Legend::line(const std::string& strong, const std::string& rest) {
    out_ += svg_two_texts(x_ + 30, y_ + 11, {11.5, dark, strong}, {11, "#5a6573", rest});
    right_ = std::max(right_, x_ + 40 + text_width(strong, 11.5) + text_width(rest, 10));
    y_ += line_height;
}

void Legend::swatch(const char* fill, const char* opacity, const char* stroke, const char* more) {
    out_ += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"20\" height=\"14\" rx=\"3\" fill=\"{}\" "
                        "fill-opacity=\"{}\" stroke=\"{}\"{}/>\n",
                        x_, y_, fill, opacity, stroke, more);
}

void Legend::tenants() {
    const auto& tenants = view_.occupancy.tenants;
    bool interrupts = false;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        const auto& tenant = tenants[i];
        swatch(color_of(i), "0.92", color_of(i));
        std::string rest = "affinity " + tenant.model + (tenant.exclusive ? ", exclusive" : "");
        if (!tenant.summary.empty()) rest += "; " + tenant.summary;
        rest += tenant.cpus.empty() ? "; no CPUs" : "; CPUs " + short_list(tenant.cpus);
        line(tenant.policy, rest);
        interrupts = interrupts || std::ranges::any_of(tenant.pins, &Pin::interrupt);
    }
    if (!tenants.empty()) shades();
    if (interrupts) {
        out_ += svg_bolt(x_ + 8, y_ + 1, dark);
        line("bolt", "interrupts go there");
    }
}

void Legend::shades() {
    constexpr std::array holds{Hold::narrow, Hold::wide, Hold::may};
    const double width = 20.0 / holds.size();
    for (std::size_t i = 0; i < holds.size(); ++i)
        out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\" "
                            "fill=\"#3b4654\" fill-opacity=\"{}\"/>\n",
                            x_ + width * static_cast<double>(i), y_, width, opacity_of(holds[i]));
    line("shades", "pinned to the core; pinned to more than the core; the policy may go there");
}

void Legend::sets() {
    const auto& topology = view_.topology;
    const auto cpus = [](const affinityd::CpuSet& set) { return "CPUs " + short_list(set); };
    if (!topology.isolated.empty()) {
        swatch("url(#hatch)", "1", "#20262e");
        line("isolated", cpus(topology.isolated));
    }
    if (!topology.nohz_full.empty()) {
        swatch("none", "1", "#20262e", " stroke-dasharray=\"2 2\"");
        line("nohz_full", cpus(topology.nohz_full));
    }
    for (const auto& kind : topology.kinds) {
        swatch(kind.rank > 0 ? "#f6f4ec" : "#ffffff", "1", "#b4bdca", kind.rank > 0 ? " ry=\"7\"" : "");
        line(kind.name, "cores: " + cpus(kind.cpus));
    }
    if (!topology.offline.empty()) {
        swatch("none", "1", "#b4bdca", " stroke-dasharray=\"3 2\"");
        line("offline", cpus(topology.offline));
    }
}

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
