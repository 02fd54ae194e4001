// SPDX-License-Identifier: Apache-2.0
// The machine as nested boxes.
#include "affinityctl/machine/machine_view.hpp"
#include "affinityctl/present/svg.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::counted;
using PartKind = Part::Kind;

/// A box that is drawn; its place is the affair of the box outside.
struct Box {
    double width = 0, height = 0;
    std::string svg, caches; ///< of a core or CPU: its private caches, told once for all that are alike
    bool is_core = false;
};

constexpr double cpu_width = 40, cpu_height = 34, page = 544;

/// An estimate, on the generous side because the font is unknown.
double text_width(const std::string& text, double size) {
    return static_cast<double>(text.size()) * size * 0.6;
}

/// By the place among the tenants.
const char* color_of(std::size_t tenant) { return svg_palette[tenant % svg_palette.size()]; }

/// How strongly a claim is coloured.
double opacity_of(Hold hold) { return hold == Hold::narrow ? 0.92 : hold == Hold::wide ? 0.5 : 0.2; }

/// The mark for interrupts.
std::string svg_bolt(double x, double y, const char* color) {
    return fmt::format("<path d=\"M{:.1f} {:.1f}l-4 6h2.6l-1.2 5 4.6-6.6h-2.7l1.5-4.4z\" fill=\"{}\"/>\n",
                       x + 3, y, color);
}

constexpr const char *dark = svg_ink, *pale = svg_faint, *white = "#ffffff";

/// Adds boxes in rows of this width below all that the box has, so far from its edges. The box grows.
void add_rows(Box& into, std::vector<Box> boxes, double room, double gap, double edge) {
    double x = 0, tallest = 0;
    for (auto& box : boxes) {
        if (x > 0 && x + box.width > room) {
            into.height += tallest + gap;
            x = tallest = 0;
        }
        into.svg += svg_at(edge + x, into.height, std::exchange(box.svg, {}));
        into.width = std::max(into.width, x + box.width + 2 * edge);
        x += box.width + gap;
        tallest = std::max(tallest, box.height);
    }
    into.height += tallest;
}

/// Makes one element of it, with an id, a tooltip and a frame.
void enclose(Box& box, const std::string& id, const std::string& tip, const std::string& frame) {
    box.svg.insert(0, fmt::format("<g id=\"{}\"><title>{}</title>{}", id, xml_text(tip), frame));
    box.svg += "</g>\n";
}

/// A width that makes rows of these boxes wider than high, and equally long where the boxes are alike.
double room_for(const std::vector<Box>& boxes, double least, double gap) {
    double area = 0, widest = 0;
    for (const auto& box : boxes) {
        area += (box.width + gap) * (box.height + gap);
        widest = std::max(widest, box.width);
    }
    const double room = std::max({least, widest, std::sqrt(area * 1.8)});
    const auto number = static_cast<double>(boxes.size());
    const auto rows = std::ceil(number / std::floor((room + gap) / (widest + gap)));
    return std::max(widest, std::ceil(number / rows) * (widest + gap));
}

class MachinePicture {
  public:
    explicit MachinePicture(const MachineView& view) : view_(view), parts_(view) {}

    [[nodiscard]] Document::Drawing draw() {
        auto machine = box_of(parts_.nested.machine);
        auto keys = keys_of();
        if (!keys.empty()) machine.height += 14;
        add_rows(machine, std::move(keys), std::max(page, machine.width), 12, 0);
        return {machine.width, machine.height, std::move(machine.svg)};
    }

  private:
    [[nodiscard]] Box box_of(const Part& top) {
        // A cache, cluster or die with one part of the same CPUs inside shares its box.
        const Part* part = &top;
        std::string caches;
        while ((part->kind == PartKind::cache || part->kind == PartKind::cluster ||
                part->kind == PartKind::die) &&
               part->parts.size() == 1 && part->parts[0].cpus == part->cpus &&
               !parts_.hanging.contains(part)) {
            caches += (caches.empty() ? "" : ", ") + parts_.name_of(*part);
            part = &part->parts[0];
        }
        if (part->kind == PartKind::cpu) return cpu(*part, caches);
        return part->kind == PartKind::core ? core(*part, std::move(caches)) : outer(*part, caches);
    }

    [[nodiscard]] Box outer(const Part& part, const std::string& caches) {
        constexpr std::array fills{white,     "#fafbfc", "#fafbfc", "#eef1f5",
                                   "#e3f0e8", "#fbf5e6", "#e5eefa", "#f2f0fa"};
        constexpr std::array edges{white,     "#a3adba", "#a3adba", "#77859a",
                                   "#6ba585", "#cdae63", "#7fa3d6", "#a69cd0"};
        std::vector<Box> inside;
        for (const auto& inner : part.parts)
            inside.push_back(box_of(inner));
        const bool is_machine = part.kind == PartKind::machine;
        const double edge = is_machine ? 0 : 10;
        const auto title = caches.empty() ? parts_.name_of(part) : caches + ", " + parts_.name_of(part);
        Box box;
        const auto line = [&](double size, const char* color, const std::string& text, const char* more) {
            box.svg += svg_text(edge, box.height += size + 3, size, color, text, more);
            box.width = std::max(box.width, text_width(text, size) + 2 * edge);
        };
        if (!is_machine) line(12, dark, title, "font-weight=\"600\"");
        const bool are_alike = std::ranges::all_of(inside, [&](const Box& each) {
            return each.is_core && !each.caches.empty() && each.caches == inside[0].caches;
        });
        if (are_alike && !inside.empty()) line(9.5, pale, "each core: " + inside[0].caches, "");
        for (const auto& [tenant, text] : held_at(part))
            line(9.5, color_of(tenant), text, "");
        if (box.height > 0) box.height += 6;
        const double gap = is_machine ? 18 : !inside.empty() && inside[0].is_core ? 6 : 10;
        const double room = room_for(inside, is_machine ? page : box.width - 2 * edge, gap);
        add_rows(box, std::move(inside), room, gap, edge);
        add_things(part, box, edge);
        box.height += edge;
        const auto at = static_cast<std::size_t>(part.kind);
        const bool is_s390 = part.kind == PartKind::drawer || part.kind == PartKind::book;
        if (is_machine)
            enclose(box, parts_.id_of(part), view_.name, "");
        else
            enclose(box, parts_.id_of(part), title + ": CPUs " + short_list(part.cpus),
                    svg_rect(0, 0, box.width, box.height, fills.at(at),
                             fmt::format("rx=\"9\" stroke=\"{}\" stroke-width=\"1.2\"{}", edges.at(at),
                                         is_s390 ? " stroke-dasharray=\"6 4\"" : "")));
        return box;
    }

    /// "nginx: 3 tasks, 2 IRQs", of what is pinned to several of its cores.
    [[nodiscard]] std::vector<std::pair<std::size_t, std::string>> held_at(const Part& part) const {
        std::map<std::size_t, std::pair<unsigned, unsigned>> numbers; // tasks, interrupts
        if (const auto found = parts_.held.find(&part); found != parts_.held.end())
            for (const auto& held : found->second)
                (held.pin->interrupt ? numbers[held.tenant].second : numbers[held.tenant].first) +=
                    held.pin->tasks;
        std::vector<std::pair<std::size_t, std::string>> lines;
        for (const auto& [tenant, number] : numbers) {
            std::string text;
            if (number.first > 0) text = counted(number.first, view_.occupancy.unit);
            if (number.second > 0) text += (text.empty() ? "" : ", ") + counted(number.second, "IRQ");
            lines.emplace_back(tenant, view_.occupancy.tenants[tenant].policy + ": " + text);
        }
        return lines;
    }

    /// Interfaces and devices at the bottom of the box, which grows.
    void add_things(const Part& part, Box& box, double edge) const {
        const auto found = parts_.hanging.find(&part);
        if (found == parts_.hanging.end()) return;
        std::vector<Box> pills;
        for (const auto& thing : found->second) {
            const bool is_nic = !thing.kind.empty();
            const double name_width = text_width(thing.name, 10.5) + 18;
            const double width = name_width + text_width(thing.detail, 9) + 8;
            pills.push_back(
                {.width = width,
                 .height = 22,
                 .svg = svg_rect(0, 0, width, 22, is_nic ? "#24384f" : "#dde3ea", "rx=\"11\"") +
                        svg_text(10, 15, 10.5, is_nic ? white : dark, thing.name, "font-weight=\"600\"") +
                        svg_text(name_width, 15, 9, is_nic ? "#d5e0ec" : pale, thing.detail)});
        }
        box.height += 10;
        add_rows(box, std::move(pills), box.width - 2 * edge, 6, edge);
    }

    [[nodiscard]] Box core(const Part& part, std::string caches) {
        const auto title = parts_.name_of(part);
        const auto word = title.substr(0, title.find(" ("));
        Box box{.width = text_width(word, 9) + 10,
                .height = 15,
                .svg = svg_text(6, 11, 9, pale, word),
                .caches = std::move(caches),
                .is_core = true};
        std::vector<Box> cpus;
        add_cpus(part, "", cpus);
        add_rows(box, std::move(cpus), 4 * (cpu_width + 4), 4, 5);
        box.height += 5;
        const bool is_slower = std::ranges::any_of(view_.topology.kinds, [&](const auto& kind) {
            return kind.rank > 0 && kind.cpus.contains(part.cpus);
        });
        enclose(box, parts_.id_of(part), title + (box.caches.empty() ? "" : ": " + box.caches),
                svg_rect(0, 0, box.width, box.height, is_slower ? "#f6f4ec" : white,
                         fmt::format("rx=\"{}\" stroke=\"#b4bdca\"", is_slower ? 11 : 5)));
        return box;
    }

    /// Caches inside the core, as in the modules of old Opterons, appear in the tooltip only.
    void add_cpus(const Part& part, const std::string& caches, std::vector<Box>& into) {
        for (const auto& inner : part.parts)
            if (inner.kind == PartKind::cpu)
                into.push_back(cpu(inner, caches));
            else
                add_cpus(inner, caches + (caches.empty() ? "" : ", ") + parts_.name_of(inner), into);
    }

    [[nodiscard]] std::string tip_of(unsigned cpu, const std::string& caches, const CpuLoad& load) const {
        std::string text = fmt::format("CPU {}", cpu) + (caches.empty() ? "" : ", " + caches);
        for (const auto& mark : cpu_marks(view_.topology, cpu))
            text += ", " + mark;
        for (const auto& [tenant, pin] : load.first_pins)
            text += fmt::format("\n{}: {} on {}", view_.occupancy.tenants[tenant].policy, pin->label,
                                short_list(pin->cpus));
        std::size_t all = 0;
        for (const auto& claim : load.claims)
            all += claim.pins + claim.irqs;
        if (all > load.first_pins.size()) text += fmt::format("\nand {} more", all - load.first_pins.size());
        return text;
    }

    [[nodiscard]] Box cpu(const Part& part, const std::string& caches) {
        const unsigned cpu = part.cpus.first();
        const auto& load = parts_.loads[cpu];
        const auto whole = [](const char* fill, const char* more) {
            return svg_rect(0, 0, cpu_width, cpu_height, fill, more);
        };
        std::string svg;
        const double share = cpu_width / static_cast<double>(std::max<std::size_t>(load.claims.size(), 1));
        for (std::size_t i = 0; i < load.claims.size(); ++i)
            svg += svg_rect(share * static_cast<double>(i), 0, share, cpu_height,
                            color_of(load.claims[i].tenant),
                            fmt::format("rx=\"3\" fill-opacity=\"{}\"", opacity_of(load.claims[i].hold)));
        const bool is_isolated = view_.topology.isolated.contains(cpu);
        if (is_isolated) svg += whole(hatch, "rx=\"4\" stroke=\"#20262e\"");
        if (view_.topology.nohz_full.contains(cpu)) svg += whole("none", dashed);
        // White on one full colour; on anything else dark with a white rim.
        const bool is_plain = load.claims.size() == 1 && load.claims[0].hold == Hold::narrow && !is_isolated;
        const char* ink = is_plain ? white : dark;
        const std::string style =
            std::string("text-anchor=\"middle\"") +
            (is_plain ? "" : " paint-order=\"stroke\" stroke=\"#ffffff\" stroke-width=\"2\"");
        svg += svg_text(cpu_width / 2, load.tasks > 0 ? 16 : 21, 12, ink, std::to_string(cpu),
                        style + " font-weight=\"600\"");
        if (load.tasks > 0)
            svg += svg_text(cpu_width / 2, 28, 9, ink, counted(load.tasks, view_.occupancy.unit), style);
        if (load.interrupts > 0) svg += svg_bolt(cpu_width - 9, 3, ink);
        Box box{cpu_width, cpu_height, std::move(svg), caches};
        enclose(box, parts_.id_of(part), tip_of(cpu, caches, load),
                whole("#f1f3f6", "rx=\"4\" stroke=\"#c3cbd6\""));
        return box;
    }

    /// The meaning of the colours and marks.
    [[nodiscard]] std::vector<Box> keys_of() const {
        std::vector<Box> keys;
        const auto add = [&](const std::string& mark, const std::string& word) {
            keys.push_back({28 + text_width(word, 11), 16, mark + svg_text(26, 11, 11, dark, word)});
        };
        const auto swatch = [](const char* fill, const std::string& more) {
            return svg_rect(0, 0, 20, 14, fill, "rx=\"3\" " + more);
        };
        const auto& tenants = view_.occupancy.tenants;
        for (std::size_t i = 0; i < tenants.size(); ++i)
            add(swatch(color_of(i), "fill-opacity=\"0.92\""), tenants[i].policy);
        if (!tenants.empty()) {
            add(swatch(pale, fmt::format("fill-opacity=\"{}\"", opacity_of(Hold::narrow))),
                "pinned to the core");
            add(swatch(pale, fmt::format("fill-opacity=\"{}\"", opacity_of(Hold::wide))), "pinned to more");
            add(swatch(pale, fmt::format("fill-opacity=\"{}\"", opacity_of(Hold::may))),
                "the policy may go there");
        }
        if (std::ranges::any_of(parts_.loads, [](const auto& load) { return load.second.interrupts > 0; }))
            add(svg_bolt(8, 1, dark), "interrupts go there");
        if (!view_.topology.isolated.empty()) add(swatch(hatch, "stroke=\"#20262e\""), "isolated");
        if (!view_.topology.nohz_full.empty()) add(swatch("none", dashed), "nohz_full");
        return keys;
    }

    static constexpr const char* hatch = "url(#hatch)";
    static constexpr const char* dashed =
        "rx=\"3\" stroke=\"#20262e\" stroke-width=\"1.4\" stroke-dasharray=\"2 2\"";
    const MachineView& view_;
    MachineParts parts_;
};

} // namespace

Document::Drawing machine_picture(const MachineView& view) {
    auto drawing = MachinePicture(view).draw();
    if (!view.topology.isolated.empty())
        drawing.svg += "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
                       "patternTransform=\"rotate(45)\"><path d=\"M0 0V6\" stroke=\"#9aa3af\" "
                       "stroke-width=\"2\"/></pattern></defs>\n";
    return drawing;
}

} // namespace affinityctl
