// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/picture_boxes.hpp"

#include "affinityctl/present/svg.hpp"
#include "affinityctl/views/topology/cpu_list.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace affinityctl {

using Kind = Part::Kind;

const char* opacity_of(Hold hold) {
    return hold == Hold::narrow ? "0.92" : hold == Hold::wide ? "0.5" : "0.2";
}

std::string svg_bolt(double x, double y, const char* color) {
    return fmt::format("<path d=\"M{:.1f} {:.1f}l-4 6h2.6l-1.2 5 4.6-6.6h-2.7l1.5-4.4z\" fill=\"{}\"/>\n",
                       x + 3, y, color);
}

void Boxes::draw(const Block& block) {
    if (block.part->kind == Kind::cpu) return cpu(block);
    out_ += fmt::format("<g id=\"{}\">", id_of(view_.topology, *block.part));
    if (block.part->kind == Kind::core)
        core(block);
    else if (block.part->kind != Kind::machine)
        group(block);
    for (const auto& inner : block.inside)
        draw(inner);
    pills(block);
    out_ += "</g>\n";
}

void Boxes::rect(const Block& block, const Look& look, const char* more) {
    out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\" "
                        "fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                        block.x, block.y, block.width, block.height, look.radius, look.fill, look.stroke,
                        look.line, more);
}

void Boxes::group(const Block& block) {
    out_ += svg_title(block.title + ": CPUs " + short_list(block.part->cpus));
    const bool outer = block.part->kind == Kind::drawer || block.part->kind == Kind::book;
    rect(block, look_of(block.part->kind), outer ? " stroke-dasharray=\"6 4\"" : "");
    out_ += svg_text(block.x + 10, block.y + 16, 12, "#2a323d", block.title, "font-weight=\"600\"");
    badges(block, block.x + 14 + text_width(block.title, 12));
    if (!block.note.empty()) out_ += svg_text(block.x + 10, block.y + 30, 9.5, "#677384", block.note);
}

void Boxes::core(const Block& block) {
    Look look = look_of(Kind::core);
    const auto kind = names_.kind_of(*block.part);
    const auto found = std::ranges::find(view_.topology.kinds, kind, &affinityd::topology::Kind::name);
    if (found != view_.topology.kinds.end() && found->rank > 0) look.fill = "#f6f4ec", look.radius = 11;
    out_ += svg_title(block.title + (kind.empty() ? "" : " (" + kind + ")") +
                      (block.caches.empty() ? "" : ": " + block.caches));
    rect(block, look);
    out_ += svg_text(block.x + 6, block.y + 11, 9, "#66717f", block.title);
}

std::string Boxes::cpu_title(unsigned cpu, const std::string& caches, const CpuLoad& load) const {
    std::string text = fmt::format("CPU {}", cpu) + (caches.empty() ? "" : ", " + caches);
    for (const auto& mark : cpu_marks(view_.topology, cpu))
        text += ", " + mark;
    for (const auto& [tenant, pin] : load.first_pins)
        text += "\n" + view_.occupancy.tenants[tenant].policy + ": " + pin->label + " on " +
                short_list(pin->cpus);
    if (const auto all = load.pins(); all > load.first_pins.size())
        text += fmt::format("\nand {} more", all - load.first_pins.size());
    return text;
}

/// At the right of a heading, as far as there is room.
void Boxes::badges(const Block& block, double left) {
    const auto found = badges_.find(block.part);
    if (found == badges_.end()) return;
    double right = block.x + block.width - 8;
    for (const auto& [tenant, badge] : found->second) {
        std::string text = badge.tasks > 0 ? amount_of(view_.occupancy, badge.tasks) : "";
        if (badge.interrupts > 0)
            text += fmt::format("{}{} IRQ{}", text.empty() ? "" : ", ", badge.interrupts,
                                badge.interrupts == 1 ? "" : "s");
        const double width = text_width(text, 9) + 12;
        if (right - width < left) return;
        out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"15\" rx=\"7.5\" "
                            "fill=\"{}\" fill-opacity=\"0.92\"/>\n",
                            right - width, block.y + 5, width, color_of(tenant));
        out_ += svg_text(right - width / 2, block.y + 15.5, 9, "#ffffff", text, "text-anchor=\"middle\"");
        right -= width + 5;
    }
}

void Boxes::claims(const Block& block, const CpuLoad& load) {
    const auto share = load.claims.empty() ? 0 : block.width / static_cast<double>(load.claims.size());
    for (std::size_t i = 0; i < load.claims.size(); ++i)
        out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                            "rx=\"{}\" fill=\"{}\" fill-opacity=\"{}\"/>\n",
                            block.x + share * static_cast<double>(i), block.y, share, block.height,
                            load.claims.size() == 1 ? 4 : 2, color_of(load.claims[i].tenant),
                            opacity_of(load.claims[i].hold));
}

void Boxes::cpu(const Block& block) {
    const unsigned cpu = block.part->cpus.first();
    const auto& load = loads_[cpu];
    out_ += fmt::format("<g id=\"cpu-{}\">", cpu) + svg_title(cpu_title(cpu, block.caches, load));
    rect(block, {"#f1f3f6", "#c3cbd6", 4, 1});
    claims(block, load);
    if (view_.topology.isolated.contains(cpu)) rect(block, {"url(#hatch)", "#20262e", 4, 1.2});
    if (view_.topology.nohz_full.contains(cpu))
        rect(block, {"none", "#20262e", 4, 1.4}, " stroke-dasharray=\"2 2\"");
    const bool dark =
        std::ranges::any_of(load.claims, [](const Claim& claim) { return claim.hold == Hold::narrow; });
    const char* ink = dark ? "#ffffff" : "#2a323d";
    const double middle = block.x + block.width / 2;
    const bool counts = load.tasks > 0;
    out_ += svg_text(middle, block.y + (counts ? 16 : 21), 12, ink, block.title,
                     "font-weight=\"600\" text-anchor=\"middle\"");
    if (counts)
        out_ += svg_text(middle, block.y + 27.5, 8.5, ink, amount_of(view_.occupancy, load.tasks),
                         "text-anchor=\"middle\"");
    if (load.interrupts > 0) out_ += svg_bolt(block.x + block.width - 9, block.y + 3, ink);
    out_ += "</g>\n";
}

void Boxes::pills(const Block& block) {
    const double edge = block.y + block.height;
    for (const auto& pill : block.pills) {
        const auto look = look_of(pill.what.kind);
        out_ += fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"{3}\" stroke-width=\"2\"/><circle "
                            "cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"3\" fill=\"{3}\"/>\n",
                            pill.x + 14, edge, pill.y, look.stroke);
    }
    for (const auto& pill : block.pills) { // over the stems of the rows below
        const auto look = look_of(pill.what.kind);
        out_ += fmt::format("<g class=\"hanging\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                            "height=\"{}\" rx=\"{}\" fill=\"{}\" stroke=\"{}\"/>\n",
                            pill.x, pill.y, pill.width, pill_height, look.radius, look.fill, look.stroke);
        out_ += svg_two_texts(pill.x + 11, pill.y + 16, {10.5, look.ink, pill.what.name},
                              {9, look.faint, pill.what.detail});
        out_ += "</g>\n";
    }
}

using affinityd::topology::Topology;
using Kind = Part::Kind;

namespace {

/// Most colour-blind people can tell these apart; white figures are readable on each.
constexpr std::array palette{"#2867c6", "#d9601a", "#1d8a5b", "#a83f97", "#b38600",
                             "#12839c", "#c5323f", "#6549c9", "#75573a", "#4f6070"};

} // namespace

const char* color_of(std::size_t tenant) { return palette[tenant % palette.size()]; }

Look look_of(Kind kind) {
    switch (kind) {
    case Kind::drawer:
    case Kind::book:
        return {"#fafbfc", "#a3adba", 12, 1.2};
    case Kind::package:
        return {"#eef1f5", "#77859a", 11, 1.6};
    case Kind::node:
        return {"#e3f0e8", "#6ba585", 9, 1.2};
    case Kind::die:
        return {"#fbf5e6", "#cdae63", 9, 1.2};
    case Kind::cache:
        return {"#e5eefa", "#7fa3d6", 8, 1.2};
    case Kind::cluster:
        return {"#f2f0fa", "#a69cd0", 8, 1.2};
    default:
        return {"#ffffff", "#b4bdca", 5, 1};
    }
}

PillLook look_of(Hanging::Kind kind) {
    switch (kind) {
    case Hanging::Kind::nic:
        return {"#24384f", "#24384f", "#ffffff", "#b9c9dc", 12};
    case Hanging::Kind::memory:
        return {"#f1eafa", "#9a7fc4", "#2a323d", "#66717f", 3};
    case Hanging::Kind::device:
        break;
    }
    return {"#eceff3", "#8a95a4", "#2a323d", "#66717f", 12};
}

std::string id_of(const Topology& topology, const Part& part) {
    switch (part.kind) {
    case Kind::drawer:
        return fmt::format("drawer-{}", part.index);
    case Kind::book:
        return fmt::format("book-{}", part.index);
    case Kind::package:
        return fmt::format("package-{}", part.index);
    case Kind::node:
        return fmt::format("node-{}", topology.nodes[part.index].id);
    case Kind::die:
        return fmt::format("die-{}", part.index);
    case Kind::cluster:
        return fmt::format("cluster-{}", part.index);
    case Kind::cache:
        return fmt::format("cache-{}", part.index);
    case Kind::core:
        return fmt::format("core-{}", part.index);
    case Kind::cpu:
        return fmt::format("cpu-{}", topology.cpus[part.index].id);
    case Kind::machine:
        break;
    }
    return "machine";
}

} // namespace affinityctl
