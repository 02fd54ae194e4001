// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/picture_layout.hpp"

#include "affinityctl/views/topology/part_names.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace affinityctl {

namespace {

using affinityd::topology::Topology;
using Kind = Part::Kind;

constexpr double title_font = 12, note_font = 9.5, pill_font = 10.5;

bool is_wrapper(const Part& part) {
    return part.kind == Kind::cache || part.kind == Kind::cluster || part.kind == Kind::die;
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
        if (inner.kind == Kind::cpu)
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
        if (block.part->kind != Kind::core || block.caches.empty()) return {};
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
    if (part->kind == Kind::core) {
        block = core_block(names, *part);
        block.caches = std::move(caches);
        return block;
    }
    if (part->kind == Kind::cpu)
        return cpu_block(*part, std::move(caches)); // its core has no place in the tree
    block.part = part;
    block.title = caches.empty() ? names.of(*part) : caches + ", " + names.of(*part);
    for (const auto& inner : part->parts)
        block.inside.push_back(make_block(names, inner, hanging, heading_room));
    const bool of_cores = !block.inside.empty() && block.inside[0].part->kind >= Kind::core;
    if (const auto common = common_caches(block.inside); !common.empty()) block.note = "each core: " + common;
    const double pad = part->kind == Kind::machine ? 0 : 10;
    const double head = part->kind == Kind::machine ? 0 : block.note.empty() ? 24 : 38;
    const auto size = arrange(block.inside,
                              of_cores                      ? 6
                              : part->kind == Kind::machine ? 18
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

} // namespace

double text_width(const std::string& text, double font_size) {
    return static_cast<double>(text.size()) * font_size * 0.6;
}

Block lay_out(const Topology& topology, const Part& tree, const HangingByPart& hanging, double x, double y,
              double heading_room) {
    Block block = make_block(PartNames(topology), tree, hanging, heading_room);
    move(block, x, y);
    return block;
}

} // namespace affinityctl
