// SPDX-License-Identifier: Apache-2.0
// The machine as nested boxes.
#include "affinityctl/offline/machine_view.hpp"
#include "affinityctl/present/svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::topology::Topology;
using PartKind = Part::Kind;

/// Something that hangs below a box on a short stem.
struct Pill {
    Hanging what;
    double x = 0, y = 0, width = 0;
};

/// One box of the picture, in pixels. Once it is placed, x and y are those of the picture.
struct Block {
    const Part* part = nullptr;
    std::string title;  ///< "llc 0 (L3 11 MiB)"
    std::string note;   ///< smaller, below the title: "each core: L2 1 MiB, L1d 32 KiB"
    std::string caches; ///< of a core or CPU: its private caches
    double x = 0, y = 0, width = 0, height = 0;
    double below = 0; ///< the space that the pills take below the box
    std::vector<Block> inside;
    std::vector<Pill> pills;
};

constexpr double cpu_width = 40, cpu_height = 34, pill_height = 24, stem = 12;

/// An estimate, on the generous side because the font is unknown.
double text_width(const std::string& text, double font_size) {
    return static_cast<double>(text.size()) * font_size * 0.6;
}

constexpr double title_font = 12, note_font = 9.5, pill_font = 10.5;

bool is_wrapper(const Part& part) {
    return part.kind == PartKind::cache || part.kind == PartKind::cluster || part.kind == PartKind::die;
}

/// The only part inside a cache, cluster or die, if it has the same CPUs and nothing hangs outside it; else
/// nullptr.
const Part* only_inside(const Part& part, const HangingByPart& hanging) {
    if (!is_wrapper(part) || part.parts.size() != 1 || part.parts[0].cpus != part.cpus ||
        hanging.contains(&part))
        return nullptr;
    return &part.parts[0];
}

struct Size {
    double width = 0, height = 0;
};

/// The size of the blocks in rows of `columns`. With `place`, also sets their positions.
Size in_rows(std::vector<Block>& blocks, std::size_t columns, double gap, bool place) {
    Size size;
    double y = 0;
    for (std::size_t row = 0; row < blocks.size(); row += columns) {
        double x = 0;
        double tallest = 0;
        for (std::size_t i = row; i < std::min(row + columns, blocks.size()); ++i) {
            if (place) blocks[i].x = x, blocks[i].y = y;
            x += blocks[i].width + gap;
            tallest = std::max(tallest, blocks[i].height + blocks[i].below);
        }
        size.width = std::max(size.width, x - gap);
        y += tallest + gap;
    }
    size.height = y - gap;
    return size;
}

/// Chooses the number of columns: near the ideal proportions, with a full last row if possible.
Size arrange(std::vector<Block>& blocks, double gap, double ideal) {
    std::size_t best = 1;
    double least = std::numeric_limits<double>::max();
    const std::size_t most = std::min<std::size_t>(blocks.size(), 64);
    for (std::size_t columns = 1; columns <= most; ++columns) {
        const auto size = in_rows(blocks, columns, gap, false);
        double cost = std::abs(std::log(size.width / size.height / ideal));
        if (blocks.size() % columns != 0) cost += 0.6;
        if (cost < least) {
            least = cost;
            best = columns;
        }
    }
    return in_rows(blocks, best, gap, true);
}

Block cpu_block(const Part& cpu, std::string caches) {
    Block block;
    block.part = &cpu;
    block.title = std::to_string(cpu.cpus.first());
    block.caches = std::move(caches);
    block.width = cpu_width;
    block.height = cpu_height;
    return block;
}

/// The CPUs of a core. Caches inside the core, as in the modules of old Opterons, appear in the tooltip only.
void add_cpus(const PartNames& names, const Part& part, const std::string& caches, std::vector<Block>& into) {
    for (const auto& inner : part.parts) {
        if (inner.kind == PartKind::cpu)
            into.push_back(cpu_block(inner, caches));
        else
            add_cpus(names, inner, caches + (caches.empty() ? "" : ", ") + names.of(inner), into);
    }
}

Block core_block(const PartNames& names, const Part& core) {
    Block block;
    block.part = &core;
    block.title = names.of(core);
    constexpr double pad = 5, head = 15, gap = 4;
    add_cpus(names, core, "", block.inside);
    const auto size = in_rows(block.inside, 4, gap, true);
    for (auto& inner : block.inside)
        inner.x += pad, inner.y += head;
    block.width = std::max(size.width + 2 * pad, text_width(block.title, 9) + 2 * pad);
    block.height = size.height + head + pad;
    return block;
}

/// The caches that all cores of a box have alike, which are shown once; "" if they differ.
std::string common_caches(const std::vector<Block>& blocks) {
    std::string common;
    for (const auto& block : blocks) {
        if (block.part->kind != PartKind::core || block.caches.empty()) return {};
        if (!common.empty() && block.caches != common) return {};
        common = block.caches;
    }
    return common;
}

void hang_pills(Block& block, const std::vector<Hanging>& hanging) {
    constexpr double gap = 8, indent = 14, row_gap = 8;
    const double room = std::max(block.width - indent, 300.0);
    double x = indent;
    double y = block.height + stem;
    double widest = 0;
    for (const auto& each : hanging) {
        Pill pill{.what = each, .width = 30 + text_width(each.name, pill_font) + text_width(each.detail, 9)};
        if (x > indent && x + pill.width > room + indent) {
            x = indent;
            y += pill_height + row_gap;
        }
        pill.x = x;
        pill.y = y;
        x += pill.width + gap;
        widest = std::max(widest, x - gap);
        block.pills.push_back(std::move(pill));
    }
    block.width = std::max(block.width, widest);
    block.below = y + pill_height - block.height + 4;
}

Block make_block(const PartNames& names, const Part& top, const HangingByPart& hanging, double heading_room) {
    Block block;
    const Part* part = &top;
    std::string caches;
    for (const Part* next = only_inside(*part, hanging); next != nullptr;
         next = only_inside(*part, hanging)) {
        caches += (caches.empty() ? "" : ", ") + names.of(*part);
        part = next;
    }
    if (part->kind == PartKind::core) {
        block = core_block(names, *part);
        block.caches = std::move(caches);
        return block;
    }
    if (part->kind == PartKind::cpu)
        return cpu_block(*part, std::move(caches)); // its core has no place in the tree
    block.part = part;
    block.title = caches.empty() ? names.of(*part) : caches + ", " + names.of(*part);
    for (const auto& inner : part->parts)
        block.inside.push_back(make_block(names, inner, hanging, heading_room));
    const bool of_cores = !block.inside.empty() && block.inside[0].part->kind >= PartKind::core;
    if (const auto common = common_caches(block.inside); !common.empty()) block.note = "each core: " + common;
    const double pad = part->kind == PartKind::machine ? 0 : 10;
    const double head = part->kind == PartKind::machine ? 0 : block.note.empty() ? 24 : 38;
    const auto size = arrange(block.inside,
                              of_cores                          ? 6
                              : part->kind == PartKind::machine ? 18
                                                                : 10,
                              of_cores ? 1.7 : 1.5);
    for (auto& inner : block.inside)
        inner.x += pad, inner.y += head;
    block.width = std::max({size.width, text_width(block.title, title_font) + heading_room,
                            text_width(block.note, note_font)}) +
                  2 * pad;
    block.height = size.height + head + pad;
    if (const auto found = hanging.find(part); found != hanging.end()) hang_pills(block, found->second);
    return block;
}

void move(Block& block, double x, double y) {
    block.x += x;
    block.y += y;
    for (auto& pill : block.pills)
        pill.x += block.x, pill.y += block.y;
    for (auto& inner : block.inside)
        move(inner, block.x, block.y);
}

Block lay_out(const Topology& topology, const Part& tree, const HangingByPart& hanging, double x, double y,
              double heading_room) {
    Block block = make_block(PartNames(topology), tree, hanging, heading_room);
    move(block, x, y);
    return block;
}

struct BoxLook {
    const char *fill, *stroke;
    double radius, line;
};
/// In the order of Part::Kind.
constexpr std::array<BoxLook, 10> box_looks{{{"#ffffff", "#b4bdca", 5, 1},
                                             {"#fafbfc", "#a3adba", 12, 1.2},
                                             {"#fafbfc", "#a3adba", 12, 1.2},
                                             {"#eef1f5", "#77859a", 11, 1.6},
                                             {"#e3f0e8", "#6ba585", 9, 1.2},
                                             {"#fbf5e6", "#cdae63", 9, 1.2},
                                             {"#e5eefa", "#7fa3d6", 8, 1.2},
                                             {"#f2f0fa", "#a69cd0", 8, 1.2},
                                             {"#ffffff", "#b4bdca", 5, 1},
                                             {"#f1f3f6", "#c3cbd6", 4, 1}}};
const BoxLook& look_of(PartKind kind) { return box_looks.at(static_cast<std::size_t>(kind)); }

/// Looks of things that hang below a box, in the order of Hanging::Kind.
struct PillLook {
    const char *fill, *stroke, *ink, *faint;
    double radius;
};
constexpr std::array<PillLook, 3> pill_looks{{{"#24384f", "#24384f", "#ffffff", "#b9c9dc", 12},
                                              {"#eceff3", "#8a95a4", "#2a323d", "#66717f", 12},
                                              {"#f1eafa", "#9a7fc4", "#2a323d", "#66717f", 3}}};

/// By the place among the tenants. Most colour-blind people can tell these apart; white figures are readable
/// on each.
const char* color_of(std::size_t tenant) {
    constexpr std::array colors{"#2867c6", "#d9601a", "#1d8a5b", "#a83f97", "#b38600",
                                "#12839c", "#c5323f", "#6549c9", "#75573a", "#4f6070"};
    return colors[tenant % colors.size()];
}

/// How strongly a claim is coloured.
const char* opacity_of(Hold hold) {
    return hold == Hold::narrow ? "0.92" : hold == Hold::wide ? "0.5" : "0.2";
}

/// The mark for interrupts.
std::string svg_bolt(double x, double y, const char* color) {
    return fmt::format("<path d=\"M{:.1f} {:.1f}l-4 6h2.6l-1.2 5 4.6-6.6h-2.7l1.5-4.4z\" fill=\"{}\"/>\n",
                       x + 3, y, color);
}

/// Draws the boxes of a machine that are laid out already.
class Boxes {
  public:
    /// Goes on with `text`, which may become long: it is never copied. The others must outlive this object.
    Boxes(const MachineView& view, const Badges& badges, std::string text)
        : view_(view), badges_(badges), names_(view.topology), loads_(loads_of(view)), out_(std::move(text)) {
    }
    /// A box and all that is inside and below it.
    void draw(const Block& block) {
        if (block.part->kind == PartKind::cpu) return cpu(block);
        out_ += fmt::format("<g id=\"{}\">", part_id(view_.topology, *block.part));
        if (block.part->kind == PartKind::core)
            core(block);
        else if (block.part->kind != PartKind::machine)
            group(block);
        for (const auto& inner : block.inside)
            draw(inner);
        pills(block);
        out_ += "</g>\n";
    }

    [[nodiscard]] std::string take() { return std::move(out_); }

  private:
    void rect(const Block& block, const BoxLook& look, const char* more = "") {
        out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\" "
                            "fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                            block.x, block.y, block.width, block.height, look.radius, look.fill, look.stroke,
                            look.line, more);
    }

    void group(const Block& block) {
        out_ += svg_title(block.title + ": CPUs " + short_list(block.part->cpus));
        const bool outer = block.part->kind == PartKind::drawer || block.part->kind == PartKind::book;
        rect(block, look_of(block.part->kind), outer ? " stroke-dasharray=\"6 4\"" : "");
        out_ += svg_text(block.x + 10, block.y + 16, 12, "#2a323d", block.title, "font-weight=\"600\"");
        badges(block, block.x + 14 + text_width(block.title, 12));
        if (!block.note.empty()) out_ += svg_text(block.x + 10, block.y + 30, 9.5, "#677384", block.note);
    }

    void core(const Block& block) {
        BoxLook look = look_of(PartKind::core);
        const auto kind = names_.kind_of(*block.part);
        const auto found = std::ranges::find(view_.topology.kinds, kind, &affinityd::topology::Kind::name);
        if (found != view_.topology.kinds.end() && found->rank > 0) look.fill = "#f6f4ec", look.radius = 11;
        out_ += svg_title(block.title + (kind.empty() ? "" : " (" + kind + ")") +
                          (block.caches.empty() ? "" : ": " + block.caches));
        rect(block, look);
        out_ += svg_text(block.x + 6, block.y + 11, 9, "#66717f", block.title);
    }

    [[nodiscard]] std::string cpu_title(unsigned cpu, const std::string& caches, const CpuLoad& load) const {
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
    void badges(const Block& block, double left) {
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

    void claims(const Block& block, const CpuLoad& load) {
        const auto share = load.claims.empty() ? 0 : block.width / static_cast<double>(load.claims.size());
        for (std::size_t i = 0; i < load.claims.size(); ++i)
            out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                                "rx=\"{}\" fill=\"{}\" fill-opacity=\"{}\"/>\n",
                                block.x + share * static_cast<double>(i), block.y, share, block.height,
                                load.claims.size() == 1 ? 4 : 2, color_of(load.claims[i].tenant),
                                opacity_of(load.claims[i].hold));
    }

    void cpu(const Block& block) {
        const unsigned cpu = block.part->cpus.first();
        const auto& load = loads_[cpu];
        out_ += fmt::format("<g id=\"cpu-{}\">", cpu) + svg_title(cpu_title(cpu, block.caches, load));
        rect(block, {"#f1f3f6", "#c3cbd6", 4, 1});
        claims(block, load);
        const bool is_striped = view_.topology.isolated.contains(cpu);
        if (is_striped) rect(block, {"url(#hatch)", "#20262e", 4, 1.2});
        if (view_.topology.nohz_full.contains(cpu))
            rect(block, {"none", "#20262e", 4, 1.4}, " stroke-dasharray=\"2 2\"");
        const bool dark =
            std::ranges::any_of(load.claims, [](const Claim& claim) { return claim.hold == Hold::narrow; });
        // Figures on stripes are dark, with a white rim.
        const char* ink = dark && !is_striped ? "#ffffff" : "#2a323d";
        const std::string rim =
            is_striped ? " paint-order=\"stroke\" stroke=\"#ffffff\" stroke-width=\"2.5\"" : "";
        const double middle = block.x + block.width / 2;
        const bool counts = load.tasks > 0;
        out_ += svg_text(middle, block.y + (counts ? 16 : 21), 12, ink, block.title,
                         "font-weight=\"600\" text-anchor=\"middle\"" + rim);
        if (counts)
            out_ += svg_text(middle, block.y + 27.5, 8.5, ink, amount_of(view_.occupancy, load.tasks),
                             "text-anchor=\"middle\"" + rim);
        if (load.interrupts > 0) out_ += svg_bolt(block.x + block.width - 9, block.y + 3, ink);
        out_ += "</g>\n";
    }

    void pills(const Block& block) {
        const double edge = block.y + block.height;
        for (const auto& pill : block.pills) {
            const auto look = pill_looks.at(static_cast<std::size_t>(pill.what.kind));
            out_ +=
                fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"{3}\" stroke-width=\"2\"/><circle "
                            "cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"3\" fill=\"{3}\"/>\n",
                            pill.x + 14, edge, pill.y, look.stroke);
        }
        for (const auto& pill : block.pills) { // over the stems of the rows below
            const auto look = pill_looks.at(static_cast<std::size_t>(pill.what.kind));
            out_ += fmt::format("<g class=\"hanging\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                                "height=\"{}\" rx=\"{}\" fill=\"{}\" stroke=\"{}\"/>\n",
                                pill.x, pill.y, pill.width, pill_height, look.radius, look.fill, look.stroke);
            out_ += svg_two_texts(pill.x + 11, pill.y + 16, {10.5, look.ink, pill.what.name},
                                  {9, look.faint, pill.what.detail});
            out_ += "</g>\n";
        }
    }

    const MachineView& view_;
    const Badges& badges_;
    PartNames names_;
    CpuLoads loads_;
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

/// The meaning of the colours and marks of the picture, one line each.
class Legend {
  public:
    /// Draws the lines from the point x, y downwards. The view must outlive this object.
    Legend(const MachineView& view, double x, double y) : view_(view), x_(x), y_(y) {
        tenants();
        sets();
        for (const auto& remark : view.occupancy.remarks)
            line("note", shortened(remark));
    }

    [[nodiscard]] const std::string& text() const { return out_; }
    [[nodiscard]] double right() const { return right_; }  ///< where the widest line ends
    [[nodiscard]] double bottom() const { return y_ - 8; } ///< where the last line ends

  private:
    void line(const std::string& strong, const std::string& rest) {
        out_ += svg_two_texts(x_ + 30, y_ + 11, {11.5, dark, strong}, {11, "#5a6573", rest});
        right_ = std::max(right_, x_ + 40 + text_width(strong, 11.5) + text_width(rest, 10));
        y_ += line_height;
    }

    void swatch(const char* fill, const char* opacity, const char* stroke, const char* more = "") {
        out_ += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"20\" height=\"14\" rx=\"3\" fill=\"{}\" "
                            "fill-opacity=\"{}\" stroke=\"{}\"{}/>\n",
                            x_, y_, fill, opacity, stroke, more);
    }

    void tenants() {
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

    void shades() {
        constexpr std::array holds{Hold::narrow, Hold::wide, Hold::may};
        const double width = 20.0 / holds.size();
        for (std::size_t i = 0; i < holds.size(); ++i)
            out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\" "
                                "fill=\"#3b4654\" fill-opacity=\"{}\"/>\n",
                                x_ + width * static_cast<double>(i), y_, width, opacity_of(holds[i]));
        line("shades", "pinned to the core; pinned to more than the core; the policy may go there");
    }

    void sets() {
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

    const MachineView& view_;
    double x_, y_;
    double right_ = 0;
    std::string out_;
};

constexpr double badge_room = 64; ///< for "12 tasks" beside a heading
/// Over isolated CPUs.
constexpr const char* hatch =
    "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"1.6\" height=\"6\" fill=\"#20262e\" "
    "fill-opacity=\"0.28\"/></pattern></defs>\n";

} // namespace

Document::Drawing machine_picture(const MachineView& view) {
    const auto nested = nest(view.topology);
    const auto hanging = hang_up(view, nested.machine);
    const Block top = lay_out(view.topology, nested.machine, hanging, 0, 0,
                              view.occupancy.tenants.empty() ? 0 : badge_room);
    const auto badges = badges_of(view, nested.machine);
    const Legend legend(view, 0, top.y + top.height + top.below + 30);
    Boxes boxes(view, badges, hatch);
    boxes.draw(top);
    return {std::max(legend.right(), top.x + top.width), legend.bottom(), boxes.take() + legend.text()};
}

} // namespace affinityctl
