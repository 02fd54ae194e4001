// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/latency_view.hpp"

#include "affinityctl/present/svg.hpp"
#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/heat_shades.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"
#include "experiments/latency/group_names.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;

std::string headline_of(const LatencyView& view) {
    auto text = "Latency between " + counted(view.latencies.cpus().size(), "CPU") + ", ns for one way";
    if (!view.source.empty()) text += " (" + printable(view.source) + ")";
    return text;
}

std::string method_of(const LatencyView& view) {
    const auto measured = view.latencies.measured(), all = view.latencies.pairs();
    std::string pairs = measured == all ? grouped(all) + (all == 1 ? " pair" : " pairs")
                                        : fmt::format("{} of {} pairs", grouped(measured), grouped(all));
    if (view.matrix == nullptr) return pairs;
    const auto& how = view.matrix->how;
    pairs += fmt::format(", each {} of {} round trips by {}; harmonic means", counted(how.samples, "sample"),
                         how.round_trips,
                         how.means == experiments::Means::cas ? "compare-and-swap" : "load and store");
    return pairs + fmt::format("; it took {:.{}f} s", view.seconds, view.seconds < 1 ? 2 : 1);
}

std::string groups_of(const affinityd::topology::LatencyLevel& level, std::size_t most) {
    std::string text;
    for (std::size_t i = 0; i < level.groups.size(); ++i) {
        if (i == most) return text + fmt::format(" and {} more", level.groups.size() - i);
        text += (text.empty() ? "" : "  ") + level.groups[i].to_list();
    }
    return text;
}

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

/// Where no pair of these was measured, the median of what was between their groups, the finest that have
/// any.
std::optional<double> estimate_between(const topology::Latencies& latencies,
                                       const std::vector<topology::LatencyLevel>& levels, unsigned a,
                                       unsigned b) {
    const auto mates_of = [](const topology::LatencyLevel& level, unsigned cpu) {
        const auto group = std::ranges::find_if(
            level.groups, [cpu](const CpuSet& members) { return members.contains(cpu); });
        return group == level.groups.end() ? std::vector<unsigned>() : group->to_vector();
    };
    for (const auto& level : levels)
        if (auto ns = median_between(latencies, mates_of(level, a), mates_of(level, b))) return ns;
    return std::nullopt;
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
    const auto rows = rows_for(latencies, levels, most, map.scale);
    for (const auto& row : rows) {
        map.names.push_back(*std::ranges::min_element(row));
        auto& cells = map.ns.emplace_back();
        for (const auto& column : rows) {
            cells.push_back(median_between(latencies, row, column));
            if (!cells.back() && (&row != &column || row.size() > 1))
                cells.back() = estimate_between(latencies, levels, row.front(), column.front());
            if (cells.back()) widen(map, *cells.back());
        }
    }
    // Where some CPUs only are shown, near is what is near among all of them.
    const bool shows_some =
        rows.size() < latencies.cpus().size() &&
        std::ranges::all_of(rows, [](const std::vector<unsigned>& row) { return row.size() == 1; });
    for (std::size_t row = 0; shows_some && row < latencies.cpus().size(); ++row)
        for (std::size_t column = 0; column < row; ++column)
            if (const auto ns = latencies.at(row, column)) widen(map, *ns);
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

namespace experiments = affinityd::experiments;
using affinityd::CpuSet;
using nlohmann::json;

namespace {

json levels_json(const LatencyView& view) {
    json levels = json::array();
    for (const auto& level : view.reading.levels) {
        json groups = json::array();
        for (const auto& group : level.groups)
            groups.push_back(group.to_list());
        levels.push_back({{"ns", level.ns}, {"groups", std::move(groups)}});
    }
    return levels;
}

/// Names that the topology has for each group, in the order of the levels.
json names_json(const LatencyView& view) {
    CpuSet measured;
    for (const unsigned cpu : view.latencies.cpus())
        measured.insert(cpu);
    json names = json::array();
    for (const auto& level : view.reading.levels) {
        json of_level = json::array();
        for (const auto& group : level.groups)
            of_level.push_back(view.topology == nullptr
                                   ? json()
                                   : json(experiments::name_of_group(*view.topology, group, measured)));
        names.push_back(std::move(of_level));
    }
    return names;
}

} // namespace

json latency_json(const LatencyView& view) {
    auto document = json::parse(view.matrix != nullptr ? experiments::to_json(*view.matrix)
                                                       : affinityd::topology::to_json(view.latencies));
    document["source"] = view.source;
    document["pairs"] = {{"measured", view.latencies.measured()}, {"possible", view.latencies.pairs()}};
    document["levels"] = levels_json(view);
    document["level_names"] = view.reading.level_names;
    document["group_names"] = names_json(view);
    document["distances"] = json::array();
    for (const auto& one : view.reading.distances)
        document["distances"].push_back({{"name", one.name},
                                         {"pairs", one.pairs},
                                         {"median", one.median},
                                         {"least", one.least},
                                         {"most", one.most}});
    document["findings"] = view.reading.findings;
    document["meaning"] = view.reading.meaning;
    document["remarks"] = view.remarks;
    if (view.matrix != nullptr) document["seconds"] = view.seconds;
    return document;
}

std::string latency_detail(const LatencyView& view, std::size_t most) {
    auto document = latency_json(view);
    auto text = dump(document);
    if (text.size() <= most) return text;
    for (const char* key : {"low", "high", "median"})
        document.erase(key);
    return dump(document);
}

namespace topology = affinityd::topology;

namespace {

constexpr double map_left = 150, map_top = 96, map_side = 768, map_right = 60, least_cell = 2, most_cell = 42;
constexpr double readable_cell = 10,
                 figure_cell = 26; ///< from where on cells have numbers beside, and in them
constexpr double least_label = 11; ///< height of a group whose CPUs are named
constexpr std::size_t shades = 32, scale_steps = 32, label_letters = 20;
constexpr const char* frame_color = "#20262e";

double quantized(double share) { return std::ceil(share * shades) / shades; }

/// One rectangle for neighbours of the same shade: a map of 256 CPUs has 65,536 cells.
void draw_cells(Svg& svg, const LatencyMap& map, double cell) {
    const double seam = cell >= readable_cell ? 1 : 0;
    for (std::size_t row = 0; row < map.names.size(); ++row)
        for (std::size_t column = 0; column < map.names.size();) {
            const double shade = quantized(shade_of_ns(map, map.ns[row][column]));
            std::size_t end = column + 1;
            while (seam == 0 && end < map.names.size() &&
                   quantized(shade_of_ns(map, map.ns[row][end])) == shade)
                ++end;
            if (shade > 0)
                svg.rect(map_left + cell * static_cast<double>(column),
                         map_top + cell * static_cast<double>(row),
                         cell * static_cast<double>(end - column) - seam, cell - seam, heat_color(shade));
            column = end;
        }
}

void draw_figures(Svg& svg, const LatencyMap& map, double cell) {
    for (std::size_t row = 0; row < map.names.size(); ++row)
        for (std::size_t column = 0; column < map.names.size(); ++column)
            if (const auto& ns = map.ns[row][column])
                svg.text(map_left + cell * (static_cast<double>(column) + 0.5),
                         map_top + cell * (static_cast<double>(row) + 0.5) + 4, fmt::format("{:.0f}", *ns),
                         11, Svg::Anchor::middle);
}

/// Rows of every CPU, or where there is no room for that, of some.
void draw_numbers(Svg& svg, const LatencyMap& map, double cell) {
    const double letters = std::clamp(cell * 0.55, 6.0, 12.0);
    const auto step = cell >= readable_cell ? 1U : static_cast<unsigned>(std::ceil(24 / cell));
    for (std::size_t i = 0; i < map.names.size(); i += step) {
        const double middle = cell * (static_cast<double>(i) + 0.5);
        const auto name = std::to_string(map.names[i]);
        svg.text(map_left - 6, map_top + middle + letters / 3, name, letters, Svg::Anchor::end);
        svg.text(map_left + middle, map_top - 6, name, letters, Svg::Anchor::middle);
    }
}

/// Where one group of a level ends and the next begins, in rows.
std::vector<std::size_t> borders_of(const LatencyMap& map, const topology::LatencyLevel& level) {
    std::vector<std::size_t> borders{0};
    for (std::size_t i = 1; i < map.names.size(); ++i) {
        const auto group = std::ranges::find_if(
            level.groups, [&](const affinityd::CpuSet& members) { return members.contains(map.names[i]); });
        if (group != level.groups.end() && !group->contains(map.names[i - 1])) borders.push_back(i);
    }
    borders.push_back(map.names.size());
    return borders;
}

/// The finest level whose groups have room for their CPUs beside them; null: there is none.
const topology::LatencyLevel* level_to_name(const std::vector<topology::LatencyLevel>& levels, double cell) {
    for (const auto& level : levels) {
        const auto least = std::ranges::min(level.groups, {}, &affinityd::CpuSet::count).count();
        if (cell * static_cast<double>(least) >= least_label) return &level;
    }
    return nullptr;
}

/// Frames around groups, and where CPUs are too small for numbers, which ones they are.
void draw_groups(Svg& svg, const LatencyMap& map, const topology::LatencyLevel& level, double cell,
                 bool is_named) {
    const auto borders = borders_of(map, level);
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
        const double from = cell * static_cast<double>(borders[i]),
                     to = cell * static_cast<double>(borders[i + 1]);
        for (const double at : {from, to}) {
            svg.line(map_left + from, map_top + at, map_left + to, map_top + at, frame_color, 1);
            svg.line(map_left + at, map_top + from, map_left + at, map_top + to, frame_color, 1);
        }
        if (!is_named) continue;
        affinityd::CpuSet members;
        for (std::size_t row = borders[i]; row < borders[i + 1]; ++row)
            members.insert(map.names[row]);
        svg.text(map_left - 6, map_top + (from + to) / 2 + 4, cut(members.to_list(), label_letters, Page{}),
                 11, Svg::Anchor::end);
    }
}

void draw_scale(Svg& svg, const LatencyMap& map, double y) {
    const double step = 240.0 / scale_steps;
    const double range = std::log(std::max(map.most / map.least, 2.0));
    svg.text(map_left, y + 12, fmt::format("{:.0f} ns", map.least), 12);
    for (std::size_t i = 0; i < scale_steps; ++i) {
        const double part = (static_cast<double>(i) + 0.5) / scale_steps;
        const double ns = map.least * std::exp(part * range);
        svg.rect(map_left + 56 + step * static_cast<double>(i), y, step + 0.5, 14,
                 heat_color(quantized(shade_of_ns(map, ns))));
    }
    svg.text(map_left + 56 + 240 + 8, y + 12, fmt::format("{:.0f} ns", map.least * std::exp(range)), 12);
}

std::vector<std::string> latency_notes(const LatencyView& view) {
    std::vector<std::string> sentences;
    for (const auto& one : view.reading.distances)
        sentences.push_back(fmt::format("{}: {:.0f} ns ({:.0f} to {:.0f}; {})", one.name, one.median,
                                        one.least, one.most, counted(one.pairs, "pair")));
    sentences.insert(sentences.end(), view.reading.findings.begin(), view.reading.findings.end());
    sentences.insert(sentences.end(), view.remarks.begin(), view.remarks.end());
    sentences.push_back(view.reading.meaning);
    return sentences;
}

} // namespace

std::string latency_svg(const LatencyView& view) {
    const auto& levels = view.reading.levels;
    const auto map = latency_map(view.latencies, levels, topology::Latencies::most_cpus);
    const auto count = static_cast<double>(map.names.size());
    const double cell = std::clamp(map_side / count, least_cell, most_cell);
    const double bottom = map_top + cell * count;
    const auto notes = note_lines(latency_notes(view), map_side, 12);
    Svg svg(std::max(map_left + cell * count + map_right, map_left + map_side + map_right),
            bottom + 70 + note_leading * static_cast<double>(notes.size()), "Latency between CPUs");
    svg.text(map_left, 30, headline_of(view), 17);
    svg.text(map_left, 50, method_of(view), 12);
    draw_cells(svg, map, cell);
    if (cell >= figure_cell) draw_figures(svg, map, cell);
    const auto* named = cell >= readable_cell ? nullptr : level_to_name(levels, cell);
    if (named == nullptr) draw_numbers(svg, map, cell);
    for (const auto& level : levels)
        if (&level == &levels.back() || &level == named || cell >= readable_cell)
            draw_groups(svg, map, level, cell, &level == named);
    if (map.most > 0) draw_scale(svg, map, bottom + 14);
    draw_notes(svg, map_left, bottom + 44, notes, 12);
    return svg.finish();
}

namespace experiments = affinityd::experiments;

namespace {

constexpr std::size_t few_pairs = 12, most_groups_told = 12;

std::string ns_text(double ns) { return ns < 100 ? fmt::format("{:.1f}", ns) : fmt::format("{:.0f}", ns); }

/// Each pair where they are few: with its interval.
std::string pair_table(const experiments::LatencyMatrix& matrix, const Page& page) {
    Table table({"CPUS", "NS", "95 % INTERVAL", "MEDIAN"});
    for (const auto& one : matrix.pairs)
        table.add({fmt::format("{} and {}", one.pair.a, one.pair.b), ns_text(one.ns),
                   one.low && one.high ? ns_text(*one.low) + " to " + ns_text(*one.high) : "too few samples",
                   ns_text(one.median)});
    return table.empty() ? std::string() : table.to_string(page) + "\n";
}

std::string distance_table(const LatencyView& view, const Page& page) {
    Table table({"DISTANCE", "PAIRS", "MEDIAN NS", "LEAST", "MOST"});
    for (const auto& one : view.reading.distances)
        table.add({one.name, grouped(one.pairs), ns_text(one.median), ns_text(one.least), ns_text(one.most)});
    return table.to_string(page) + "\n";
}

std::string level_table(const LatencyView& view, const Page& page) {
    const auto& levels = view.reading.levels;
    if (levels.empty())
        return wrapped(view.reading.is_uniform
                           ? view.reading.not_measured > 0
                                 ? "No groups were found: where it was measured, CPUs are about as near to "
                                   "each other."
                                 : "No groups: all CPUs are about as near to each other."
                           : "No groups: some CPUs are much nearer to each other than others, but they form "
                             "no groups with a clear step from one to the next.",
                       "", page) +
               "\n";
    Table table({"LEVEL", "NS", "GROUPS", "THE TOPOLOGY SAYS", "CPUS"});
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const auto& name = view.reading.level_names[i];
        table.add({std::to_string(i + 1), ns_text(levels[i].ns), grouped(levels[i].groups.size()),
                   !name.empty()              ? name
                   : view.topology == nullptr ? "-"
                                              : "nothing of them",
                   groups_of(levels[i], most_groups_told)});
    }
    return table.to_string(page) + "\n";
}

} // namespace

std::string latency_text(const LatencyView& view, const Page& page) {
    auto text = bold(headline_of(view), page.color) + "\n" + wrapped(method_of(view), "  ", page) + "\n";
    if (view.matrix != nullptr && view.matrix->pairs.size() <= few_pairs)
        text += pair_table(*view.matrix, page);
    if (view.latencies.measured() > 1) {
        text += distance_table(view, page) + level_table(view, page) +
                latency_map_text(view.latencies, view.reading.levels, page) + "\n";
    }
    for (const auto& finding : view.reading.findings)
        text += wrapped(finding, "* ", page);
    for (const auto& remark : view.remarks)
        text += wrapped(remark, "* ", page);
    return text + wrapped(view.reading.meaning, "", page);
}

} // namespace affinityctl
