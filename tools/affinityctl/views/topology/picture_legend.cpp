// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/picture_legend.hpp"

#include "affinityctl/views/svg_text.hpp"
#include "affinityctl/views/topology/cpu_list.hpp"
#include "affinityctl/views/topology/picture_boxes.hpp"
#include "affinityctl/views/topology/picture_layout.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace affinityctl {

namespace {

constexpr double line_height = 22;
constexpr const char* dark = "#1c222b";

std::string shortened(std::string text) {
    constexpr std::size_t most = 120;
    if (text.size() <= most) return text;
    text.resize(most);
    return text + "...";
}

} // namespace

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

} // namespace affinityctl
