// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/locality/heat_map.hpp"

#include "affinityctl/views/heat_shades.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace affinityctl {

namespace locality = affinityd::locality;

namespace {

constexpr std::size_t usual_width = 80;

using Weights = std::map<unsigned, std::uint64_t>; ///< group -> reads in its row and its column

Weights weights_of(const locality::ReadMatrix& matrix, const locality::Nearness& near,
                   locality::NearLevel level) {
    Weights weights;
    for (const auto& [pair, reads] : matrix) {
        weights[near.group(level, pair.first)] += reads;
        weights[near.group(level, pair.second)] += reads;
    }
    return weights;
}

std::string cell_of(double share, std::size_t width, const Page& page) {
    if (width == heat_narrow) return shade_cell(share, page);
    const auto text = share <= 0 ? "." : share < 0.005 ? "<1" : fmt::format("{:.0f}", share * 100);
    return shaded(fmt::format("{:>{}}", text, heat_wide), share, page);
}

} // namespace

HeatMap fold(const locality::ReadMatrix& matrix, const locality::Nearness& near, std::size_t most) {
    HeatMap map;
    Weights weights;
    for (const auto level : locality::near_levels) {
        map.level = level;
        weights = weights_of(matrix, near, level);
        if (weights.size() <= most) break;
    }
    std::vector<std::pair<std::uint64_t, unsigned>> busiest;
    for (const auto& [group, reads] : weights)
        busiest.emplace_back(reads, group);
    std::ranges::sort(busiest, std::greater{});
    map.left_out = busiest.size() - std::min(busiest.size(), most);
    busiest.resize(std::min(busiest.size(), most));
    std::map<unsigned, std::size_t> place;
    for (const auto& [reads, group] : busiest)
        place[group] = 0;
    for (auto& [group, at] : place) {
        at = map.groups.size();
        map.groups.push_back(group);
    }
    map.cells.assign(map.groups.size(), std::vector<double>(map.groups.size(), 0));
    map.arrivals.assign(map.groups.size(), 0);
    double all = 0;
    for (const auto& [pair, reads] : matrix) {
        all += static_cast<double>(reads);
        const auto row = place.find(near.group(map.level, pair.first));
        const auto column = place.find(near.group(map.level, pair.second));
        if (row == place.end()) continue;
        map.arrivals[row->second] += static_cast<double>(reads);
        if (column != place.end()) map.cells[row->second][column->second] += static_cast<double>(reads);
    }
    for (std::size_t row = 0; row < map.groups.size(); ++row) {
        for (auto& cell : map.cells[row])
            cell /= std::max(map.arrivals[row], 1.0);
        map.arrivals[row] /= std::max(all, 1.0);
    }
    return map;
}

std::string scale_of(const HeatMap& map) {
    auto text = fmt::format("by {}", name_of(map.level));
    if (map.level != locality::NearLevel::cpu) text += ", each named by its lowest CPU";
    if (map.left_out > 0) text += fmt::format("; {} with fewer reads left out", map.left_out);
    return text;
}

std::string heat_text(const locality::ReadMatrix& matrix, const locality::Nearness& near, const Page& page) {
    if (matrix.empty()) return {};
    const auto width = page.width == 0 ? usual_width : page.width;
    const auto room = width > heat_label + 6 ? width - heat_label - 5 : 1;
    const auto map = fold(matrix, near, std::max<std::size_t>(room / heat_narrow, 1));
    const auto cell = map.groups.size() * heat_wide <= room ? heat_wide : heat_narrow;
    Page whole = page;
    whole.width = width;
    std::string text = bold("Arrives (down), read (across)", page.color) + "\n" +
                       wrapped("in % of the row, " + scale_of(map), "  ", whole);
    text += column_heads(map.groups, cell, "read on");
    for (std::size_t row = 0; row < map.groups.size(); ++row) {
        text += row_head(map.groups[row], cell);
        for (const double share : map.cells[row])
            text += cell_of(map.arrivals[row] > 0 ? share : 0, cell, page);
        text += "\n";
    }
    return text;
}

} // namespace affinityctl
