// SPDX-License-Identifier: Apache-2.0
#include "topology_svg.hpp"

#include "svg_layout.hpp"
#include "svg_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using affinityd::topology::Topology;
using Kind = Part::Kind;

/// Colours of policies: apart for most colour-blind eyes, dark enough for white figures.
constexpr std::array palette{"#2867c6", "#d9601a", "#1d8a5b", "#a83f97", "#b38600",
                             "#12839c", "#c5323f", "#6549c9", "#75573a", "#4f6070"};

const char* color_of(std::size_t tenant) { return palette[tenant % palette.size()]; }

struct Look {
    const char* fill;
    const char* stroke;
    double radius, line;
};

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

struct PillLook {
    const char *fill, *stroke, *ink, *faint;
    double radius;
};

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

/// The word for a part's id in the picture: "llc-0" is what somebody who looks into it seeks.
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

class Picture {
  public:
    explicit Picture(const MachineView& view)
        : view_(view), nested_(nest(view.topology)), hanging_(hang_up(view, nested_.machine)),
          top_(lay_out(view.topology, nested_.machine, hanging_, margin, headline,
                       view.occupancy.tenants.empty() ? 0 : badge_room)) {
        find_badges();
    }

    std::string text() {
        boxes(top_);
        const double body = top_.y + top_.height + top_.below;
        const double end = legend(body + 30);
        width_ = std::max(width_, top_.x + top_.width);
        const double width = std::max(width_ + margin, 460.0);
        const double height = end + margin;
        std::string head = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
            "{0:.0f} {1:.0f}\" "
            "font-family=\"Inter, 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif\">\n"
            "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
            "patternTransform=\"rotate(45)\">"
            "<rect width=\"1.6\" height=\"6\" fill=\"#20262e\" fill-opacity=\"0.28\"/></pattern></defs>\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            width, height);
        head += svg_text(margin, 38, 19, "#1c222b", view_.name.empty() ? "machine" : view_.name,
                         "font-weight=\"700\"");
        std::string under = machine_summary(view_.topology);
        if (!view_.occupancy.tenants.empty()) under += "; who is where, " + view_.occupancy.source;
        head += svg_text(margin, 56, 11.5, "#5a6573", under);
        return head + out_ + "</svg>\n";
    }

  private:
    static constexpr double margin = 28, headline = 76;
    static constexpr double badge_room = 64; ///< for "12 tasks" beside a heading

    void text_at(double x, double y, double size, const char* color, const std::string& text,
                 const char* more = "") {
        out_ += svg_text(x, y, size, color, text, more);
    }

    void boxes(const Block& block) {
        if (block.part->kind == Kind::cpu) return cpu(block);
        out_ += fmt::format("<g id=\"{}\">", id_of(view_.topology, *block.part));
        if (block.part->kind == Kind::core)
            core(block);
        else if (block.part->kind != Kind::machine)
            group(block);
        for (const auto& inner : block.inside)
            boxes(inner);
        pills(block);
        out_ += "</g>\n";
    }

    void rect(const Block& block, const Look& look, const char* more = "") {
        out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\" "
                            "fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                            block.x, block.y, block.width, block.height, look.radius, look.fill, look.stroke,
                            look.line, more);
    }

    void group(const Block& block) {
        out_ += svg_title(block.title + ": CPUs " + block.part->cpus.to_list());
        const bool outer = block.part->kind == Kind::drawer || block.part->kind == Kind::book;
        rect(block, look_of(block.part->kind), outer ? " stroke-dasharray=\"6 4\"" : "");
        text_at(block.x + 10, block.y + 16, 12, "#2a323d", block.title, "font-weight=\"600\"");
        badges(block, block.x + 14 + text_width(block.title, 12));
        if (!block.note.empty()) text_at(block.x + 10, block.y + 30, 9.5, "#677384", block.note);
    }

    void core(const Block& block) {
        Look look = look_of(Kind::core);
        const auto& kinds = view_.topology.kinds;
        const auto kind = std::ranges::find_if(
            kinds, [&](const auto& each) { return each.cpus.contains(block.part->cpus); });
        if (kind != kinds.end() && kind->rank > 0) look.fill = "#f6f4ec", look.radius = 11;
        out_ += svg_title(block.title + (kind == kinds.end() ? "" : " (" + kind->name + ")") +
                          (block.caches.empty() ? "" : ": " + block.caches));
        rect(block, look);
        text_at(block.x + 6, block.y + 11, 9, "#66717f", block.title);
    }

    std::string cpu_title(unsigned cpu, const std::string& caches) const {
        constexpr std::size_t most = 16;
        std::string text = fmt::format("CPU {}", cpu) + (caches.empty() ? "" : ", " + caches);
        for (const auto& mark : cpu_marks(view_.topology, cpu))
            text += ", " + mark;
        std::size_t lines = 0;
        for (const auto& tenant : view_.occupancy.tenants)
            for (const auto& pin : tenant.pins)
                if (pin.cpus.contains(cpu) && ++lines <= most)
                    text += "\n" + tenant.policy + ": " + pin.label + " on " + pin.cpus.to_list();
        if (lines > most) text += fmt::format("\nand {} more", lines - most);
        return text;
    }

    /// How a policy holds a CPU: may go there, is pinned to a wider set, is pinned to its core.
    enum class Hold { may, wide, narrow };
    struct Claim {
        std::size_t tenant = 0;
        Hold hold = Hold::may;
    };

    static const char* opacity_of(Hold hold) {
        return hold == Hold::narrow ? "0.92" : hold == Hold::wide ? "0.5" : "0.2";
    }

    struct Load {
        std::vector<Claim> claims;
        unsigned tasks = 0, interrupts = 0;
    };

    [[nodiscard]] Load load_of(unsigned cpu) const {
        Load load;
        const CpuSet core = view_.topology.core_of(cpu);
        for (std::size_t i = 0; i < view_.occupancy.tenants.size(); ++i) {
            const auto& tenant = view_.occupancy.tenants[i];
            auto hold = Hold::may;
            bool any = tenant.cpus.contains(cpu);
            for (const auto& pin : tenant.pins) {
                if (!pin.cpus.contains(cpu)) continue;
                any = true;
                const bool narrow = core.contains(pin.cpus);
                hold = std::max(hold, narrow ? Hold::narrow : Hold::wide);
                if (narrow) (pin.interrupt ? load.interrupts : load.tasks) += pin.tasks;
            }
            if (any) load.claims.push_back({i, hold});
        }
        return load;
    }

    /// Of each part, who is pinned to it or to several of its cores.
    void find_badges() {
        for (std::size_t i = 0; i < view_.occupancy.tenants.size(); ++i)
            for (const auto& pin : view_.occupancy.tenants[i].pins) {
                const CpuSet cpus = pin.cpus & view_.topology.online;
                const Part& part = smallest_holding(nested_.machine, cpus);
                if (part.kind == Kind::core || cpus.empty()) continue;
                auto& badge = badges_[&part][i];
                (pin.interrupt ? badge.interrupts : badge.tasks) += pin.tasks;
            }
    }

    [[nodiscard]] std::string amount(unsigned tasks) const {
        return fmt::format("{} {}{}", tasks, view_.occupancy.unit, tasks == 1 ? "" : "s");
    }

    /// At the right of a heading, as far as there is room.
    void badges(const Block& block, double left) {
        const auto found = badges_.find(block.part);
        if (found == badges_.end()) return;
        double right = block.x + block.width - 8;
        for (const auto& [tenant, badge] : found->second) {
            std::string text = badge.tasks > 0 ? amount(badge.tasks) : "";
            if (badge.interrupts > 0)
                text += fmt::format("{}{} IRQ{}", text.empty() ? "" : ", ", badge.interrupts,
                                    badge.interrupts == 1 ? "" : "s");
            const double width = text_width(text, 9) + 12;
            if (right - width < left) return;
            out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"15\" rx=\"7.5\" "
                                "fill=\"{}\" fill-opacity=\"0.92\"/>\n",
                                right - width, block.y + 5, width, color_of(tenant));
            text_at(right - width / 2, block.y + 15.5, 9, "#ffffff", text, "text-anchor=\"middle\"");
            right -= width + 5;
        }
    }

    void cpu(const Block& block) {
        const unsigned cpu = block.part->cpus.first();
        const auto load = load_of(cpu);
        out_ += fmt::format("<g id=\"cpu-{}\">", cpu) + svg_title(cpu_title(cpu, block.caches));
        rect(block, {"#f1f3f6", "#c3cbd6", 4, 1});
        const auto share = load.claims.empty() ? 0 : block.width / static_cast<double>(load.claims.size());
        for (std::size_t i = 0; i < load.claims.size(); ++i)
            out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                                "rx=\"{}\" fill=\"{}\" fill-opacity=\"{}\"/>\n",
                                block.x + share * static_cast<double>(i), block.y, share, block.height,
                                load.claims.size() == 1 ? 4 : 2, color_of(load.claims[i].tenant),
                                opacity_of(load.claims[i].hold));
        if (view_.topology.isolated.contains(cpu)) rect(block, {"url(#hatch)", "#20262e", 4, 1.2});
        if (view_.topology.nohz_full.contains(cpu))
            rect(block, {"none", "#20262e", 4, 1.4}, " stroke-dasharray=\"2 2\"");
        const bool dark =
            std::ranges::any_of(load.claims, [](const Claim& claim) { return claim.hold == Hold::narrow; });
        const char* ink = dark ? "#ffffff" : "#2a323d";
        const double middle = block.x + block.width / 2;
        const bool counts = load.tasks > 0;
        text_at(middle, block.y + (counts ? 16 : 21), 12, ink, block.title,
                "font-weight=\"600\" text-anchor=\"middle\"");
        if (counts) text_at(middle, block.y + 27.5, 8.5, ink, amount(load.tasks), "text-anchor=\"middle\"");
        if (load.interrupts > 0) bolt(block.x + block.width - 9, block.y + 3, ink);
        out_ += "</g>\n";
    }

    void bolt(double x, double y, const char* color) {
        out_ +=
            fmt::format("<path d=\"M{:.1f} {:.1f}l-4 6h2.6l-1.2 5 4.6-6.6h-2.7l1.5-4.4z\" fill=\"{}\"/>\n",
                        x + 3, y, color);
    }

    void pills(const Block& block) {
        const double edge = block.y + block.height;
        for (const auto& pill : block.pills) {
            const auto look = look_of(pill.what.kind);
            out_ +=
                fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"{3}\" stroke-width=\"2\"/><circle "
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

    void legend_line(double y, const std::string& strong, const std::string& rest) {
        out_ += svg_two_texts(margin + 30, y + 11, {11.5, "#1c222b", strong}, {11, "#5a6573", rest});
        width_ = std::max(width_, margin + 40 + text_width(strong, 11.5) + text_width(rest, 10));
    }

    void swatch(double y, const char* fill, const char* opacity, const char* stroke, const char* more = "") {
        out_ += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"20\" height=\"14\" rx=\"3\" fill=\"{}\" "
                            "fill-opacity=\"{}\" stroke=\"{}\"{}/>\n",
                            margin, y, fill, opacity, stroke, more);
    }

    double tenants_legend(double y) {
        const auto& tenants = view_.occupancy.tenants;
        bool interrupts = false;
        for (std::size_t i = 0; i < tenants.size(); ++i, y += 22) {
            const auto& tenant = tenants[i];
            swatch(y, color_of(i), "0.92", color_of(i));
            std::string rest = "affinity " + tenant.model + (tenant.exclusive ? ", exclusive" : "");
            if (!tenant.summary.empty()) rest += "; " + tenant.summary;
            rest += tenant.cpus.empty() ? "; no CPUs" : "; CPUs " + shortened(tenant.cpus.to_list());
            legend_line(y, tenant.policy, rest);
            interrupts = interrupts || std::ranges::any_of(tenant.pins, &Pin::interrupt);
        }
        if (!tenants.empty()) {
            constexpr std::array holds{Hold::narrow, Hold::wide, Hold::may};
            const double width = 20.0 / holds.size();
            for (std::size_t i = 0; i < holds.size(); ++i)
                out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\" "
                                    "fill=\"#3b4654\" fill-opacity=\"{}\"/>\n",
                                    margin + width * static_cast<double>(i), y, width, opacity_of(holds[i]));
            legend_line(y, "shades",
                        "pinned to the core; pinned to more than the core; the policy may go there");
            y += 22;
        }
        if (interrupts) {
            bolt(margin + 8, y + 1, "#1c222b");
            legend_line(y, "bolt", "interrupts go there");
            y += 22;
        }
        return y;
    }

    double legend(double y) {
        y = tenants_legend(y);
        const Topology& topology = view_.topology;
        if (!topology.isolated.empty()) {
            swatch(y, "url(#hatch)", "1", "#20262e");
            legend_line(y, "isolated", "CPUs " + shortened(topology.isolated.to_list()));
            y += 22;
        }
        if (!topology.nohz_full.empty()) {
            swatch(y, "none", "1", "#20262e", " stroke-dasharray=\"2 2\"");
            legend_line(y, "nohz_full", "CPUs " + shortened(topology.nohz_full.to_list()));
            y += 22;
        }
        for (const auto& kind : topology.kinds) {
            swatch(y, kind.rank > 0 ? "#f6f4ec" : "#ffffff", "1", "#b4bdca",
                   kind.rank > 0 ? " ry=\"7\"" : "");
            legend_line(y, kind.name, "cores: CPUs " + shortened(kind.cpus.to_list()));
            y += 22;
        }
        if (!topology.offline.empty()) {
            swatch(y, "none", "1", "#b4bdca", " stroke-dasharray=\"3 2\"");
            legend_line(y, "offline", "CPUs " + shortened(topology.offline.to_list()));
            y += 22;
        }
        for (const auto& remark : view_.occupancy.remarks) {
            legend_line(y, "note", shortened(remark));
            y += 22;
        }
        return y - 8;
    }

    static std::string shortened(std::string text) {
        constexpr std::size_t most = 120;
        if (text.size() <= most) return text;
        text.resize(most);
        return text + "...";
    }

    const MachineView& view_;
    affinityd::topology::PartTree nested_;
    std::map<const Part*, std::vector<Hanging>> hanging_;
    Block top_;
    struct Badge {
        unsigned tasks = 0, interrupts = 0;
    };
    std::map<const Part*, std::map<std::size_t, Badge>> badges_; ///< by tenant
    std::string out_;
    double width_ = 0;
};

} // namespace

std::string svg_picture(const MachineView& view) { return Picture(view).text(); }

} // namespace affinityctl
