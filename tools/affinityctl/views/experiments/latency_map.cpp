// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/latency_map.hpp"

#include "affinityctl/views/heat_shades.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace affinityctl {

namespace topology = affinityd::topology;
using affinityd::CpuSet;

namespace {

constexpr std::size_t terminal_width = 80;
constexpr double least_range = 2, least_shade = 0.02; ///< a ratio; of the farthest
using RowCpus = std::vector<std::vector<unsigned>>;

/// Coarse groups first, finer ones within them, then numbers.
std::vector<unsigned> in_order(std::vector<unsigned> cpus,
                               const std::vector<topology::LatencyLevel>& levels) {
    for (const auto& level : levels)
        std::ranges::stable_sort(cpus, {}, [&level](unsigned cpu) {
            const auto group = std::ranges::find_if(
                level.groups, [cpu](const CpuSet& members) { return members.contains(cpu); });
            return group == level.groups.end() ? cpu : group->first();
        });
    return cpus;
}

/// The rows of the map: CPUs that a row stands for.
RowCpus rows_for(const topology::Latencies& latencies, const std::vector<topology::LatencyLevel>& levels,
                 std::size_t most, std::string& scale) {
    const auto cpus = in_order(latencies.cpus(), levels);
    RowCpus rows;
    const auto level = std::ranges::find_if(
        levels, [most](const topology::LatencyLevel& one) { return one.groups.size() <= most; });
    if (cpus.size() <= most || level == levels.end()) {
        const auto step = (cpus.size() + most - 1) / most;
        for (std::size_t i = 0; i < cpus.size(); i += step)
            rows.push_back({cpus[i]});
        if (step > 1) scale = fmt::format("1 of {} CPUs is shown", step);
        return rows;
    }
    for (const unsigned cpu : cpus) {
        const auto group = std::ranges::find_if(
            level->groups, [cpu](const CpuSet& members) { return members.contains(cpu); });
        if (rows.empty() || !group->contains(rows.back().front()))
            rows.push_back({cpu});
        else
            rows.back().push_back(cpu);
    }
    scale =
        fmt::format("groups of level {}, each named by its lowest CPU, medians", level - levels.begin() + 1);
    return rows;
}

std::optional<double> median_between(const topology::Latencies& latencies, const std::vector<unsigned>& one,
                                     const std::vector<unsigned>& other) {
    std::vector<double> values;
    for (const unsigned a : one)
        for (const unsigned b : other)
            if (const auto ns = latencies.ns(a, b)) values.push_back(*ns);
    if (values.empty()) return std::nullopt;
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    return values[values.size() / 2];
}

std::string cell_text(const LatencyMap& map, std::size_t row, std::size_t column, std::size_t width,
                      const Page& page) {
    const auto& ns = map.ns[row][column];
    const double share = shade_of_ns(map, ns);
    if (width == heat_narrow) return row == column && !ns ? "  " : shade_cell(share, page);
    const auto text = ns ? fmt::format("{:.0f}", *ns) : row == column ? "" : ".";
    return shaded(fmt::format("{:>{}}", text, heat_wide), share, page);
}

void widen(LatencyMap& map, double ns) {
    map.least = map.least > 0 ? std::min(map.least, ns) : ns;
    map.most = std::max(map.most, ns);
}

} // namespace

LatencyMap latency_map(const topology::Latencies& latencies,
                       const std::vector<topology::LatencyLevel>& levels, std::size_t most) {
    LatencyMap map;
    const auto whole = topology::completed(latencies, levels);
    const auto rows = rows_for(latencies, levels, most, map.scale);
    for (const auto& row : rows) {
        map.names.push_back(*std::ranges::min_element(row));
        auto& cells = map.ns.emplace_back();
        for (const auto& column : rows) {
            cells.push_back(median_between(whole, row, column));
            if (cells.back()) widen(map, *cells.back());
        }
    }
    // Where some CPUs only are shown, near is what is near among all of them.
    const bool shows_some =
        rows.size() < whole.cpus().size() &&
        std::ranges::all_of(rows, [](const std::vector<unsigned>& row) { return row.size() == 1; });
    for (std::size_t row = 0; shows_some && row < whole.cpus().size(); ++row)
        for (std::size_t column = 0; column < row; ++column)
            if (const auto ns = whole.at(row, column)) widen(map, *ns);
    return map;
}

double shade_of_ns(const LatencyMap& map, const std::optional<double>& ns) {
    if (!ns || map.least <= 0) return 0;
    const double range = std::log(std::max(map.most / map.least, least_range));
    return std::clamp(1 - std::log(*ns / map.least) / range, least_shade, 1.0);
}

std::string latency_map_text(const topology::Latencies& latencies,
                             const std::vector<topology::LatencyLevel>& levels, const Page& page) {
    const auto width = page.width == 0 ? terminal_width : page.width;
    const auto room = width > heat_label + 6 ? width - heat_label - 5 : heat_narrow;
    const auto map = latency_map(latencies, levels, room / heat_narrow);
    if (map.most <= 0) return {};
    const auto cell = map.names.size() * heat_wide <= room ? heat_wide : heat_narrow;
    std::string text =
        bold("Each with each", page.color) + ", " +
        (cell == heat_wide ? "ns" : fmt::format("dark is near: {:.0f} to {:.0f} ns", map.least, map.most)) +
        (map.scale.empty() ? "" : "; " + map.scale) + "\n";
    text += column_heads(map.names, cell, "CPU");
    for (std::size_t row = 0; row < map.names.size(); ++row) {
        text += row_head(map.names[row], cell);
        for (std::size_t column = 0; column < map.names.size(); ++column)
            text += cell_text(map, row, column, cell, page);
        text.erase(text.find_last_not_of(' ') + 1);
        text += "\n";
    }
    return text;
}

} // namespace affinityctl
