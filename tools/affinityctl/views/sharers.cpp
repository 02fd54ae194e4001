// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/sharers.hpp"

#include "affinityctl/present/page.hpp"
#include "affinityctl/present/svg.hpp"
#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/heat_shades.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

constexpr std::size_t most_edges = 20, most_groups_shown = 12, most_members = 8;

std::string edges_text(const SharersReport& report, const Page& page) {
    Table table({"THREAD", "AND THREAD", "WAKES IT", "IS WOKEN", "SHARE", "GROUP"});
    std::size_t shown = 0, sharers = 0;
    const auto rate = [&](std::uint64_t times) {
        return rate_text(report.wakes.seconds > 0 ? static_cast<double>(times) / report.wakes.seconds : 0);
    };
    for (const auto& edge : report.graph.edges) {
        if (!edge.is_sharer || ++sharers > most_edges) continue;
        ++shown;
        table.add({label_of(report, edge.one), label_of(report, edge.other), rate(edge.one_wakes),
                   rate(edge.other_wakes), fmt::format("{:.0f}%", edge.share * 100),
                   edge.group == 0 ? "-" : std::to_string(edge.group)});
    }
    if (shown == 0) return {};
    auto text = "\n" + table.to_string(page);
    if (sharers > shown) text += fmt::format("and {} more pairs\n", grouped(sharers - shown));
    return text +
           wrapped("SHARE: of all wake-ups of one of the two, those by timers, devices and other programs "
                   "included, the part that comes from the other.",
                   "", page);
}

std::string groups_text(const SharersReport& report, const Page& page) {
    const auto& groups = report.graph.groups;
    if (groups.empty()) return {};
    Table table({"GROUP", "THREADS"});
    for (std::size_t i = 0; i < std::min(groups.size(), most_groups_shown); ++i) {
        std::string members;
        for (std::size_t at = 0; at < std::min(groups[i].size(), most_members); ++at)
            members += (at == 0 ? "" : ", ") + label_of(report, groups[i][at]);
        if (groups[i].size() > most_members)
            members += fmt::format(" and {} more", groups[i].size() - most_members);
        table.add({std::to_string(i + 1), members});
    }
    auto text = "\n" + table.to_string(page);
    if (groups.size() > most_groups_shown)
        text += fmt::format("and {} more groups\n", groups.size() - most_groups_shown);
    return text;
}

std::string policy_part(const SharersReport& report, const Page& page) {
    if (report.suggestion.policy.empty()) return {};
    return "\n" + bold("As a policy", page.color) + "\n" + report.suggestion.policy;
}

} // namespace

std::string sharers_text(const SharersReport& report, const Page& page) {
    std::string text = wrapped(printable(headline_of(report)), "", page);
    const auto edges = edges_text(report, page);
    text +=
        edges.empty()
            ? wrapped("No two of its threads wake each other so often that they belong together.", "", page)
            : edges;
    text += groups_text(report, page) + "\n";
    for (const auto& remark : remarks_of(report))
        text += wrapped(printable(remark), "", page);
    return text + policy_part(report, page);
}

namespace {

/// Shared pages that the kernel saw; "" where it is not asked to look.
std::string pages_remark(const SharersReport& report) {
    if (report.hinting == NumaHinting::off)
        return "Shared memory is seen only where one thread wakes another: NUMA hinting is off here (one "
               "node, or "
               "kernel.numa_balancing=0).";
    if (report.hinting == NumaHinting::hidden && report.has_ended) return {}; // nobody is left to be asked
    if (report.hinting == NumaHinting::hidden)
        return "NUMA hinting is on, but this kernel does not tell its groups.";
    std::map<unsigned, std::size_t> groups;
    for (const auto& [id, thread] : report.wakes.threads)
        if (thread.pages_group) ++groups[*thread.pages_group];
    std::string text;
    for (const auto& [group, threads] : groups)
        if (threads > 1)
            text +=
                (text.empty() ? "" : ", ") + fmt::format("{} (group {})", counted(threads, "thread"), group);
    return text.empty() ? "NUMA hinting has seen no two threads touch the same pages."
                        : "NUMA hinting has seen threads touch the same pages, once at least: " + text + ".";
}

std::string void_remark(const SharersReport& report) {
    const auto& level = report.suggestion.void_level;
    if (report.suggestion.policy.empty() || level.empty()) return {};
    return fmt::format("On this machine {} little: all its CPUs {}.",
                       report.suggestion.is_together ? "the policy changes" : "the rules change",
                       level == "llc" ? "share one cache group" : "are of one " + level);
}

std::string unnamed_remark(const SharersReport& report) {
    const auto without =
        std::ranges::count_if(report.suggestion.rules, [](const GroupRule& rule) { return !rule.choice; });
    if (without == 0 || report.suggestion.is_together) return {};
    return fmt::format(
        "For {} there is no rule: other threads have the same names, and their places are not in "
        "a row. Threads that are named apart can be told apart.",
        counted(static_cast<std::uint64_t>(without), "group"));
}

std::string index_remark(const SharersReport& report) {
    const auto& rules = report.suggestion.rules;
    const bool is_by_index =
        std::ranges::any_of(rules, [](const GroupRule& rule) { return rule.choice && rule.choice->index; });
    if (!is_by_index || report.suggestion.is_together || report.suggestion.policy.empty()) return {};
    return "Rules with index hold as long as the program makes its threads in the same order, and none "
           "before them "
           "ends.";
}

std::string place_words(const std::string& unit) { return unit.empty() ? "in no service" : "in " + unit; }

/// Remarks that another program was executed, or the process went elsewhere: the policy means what it is now.
std::string change_remark(const WatchedProcess& process) {
    const auto& name = process.former_name;
    const auto& unit = process.former_unit;
    if (!name && !unit) return {};
    const auto part = [](const std::string& before, const std::string& now) {
        return before + " when the watch began and is " + now + " now";
    };
    std::string text;
    if (name) text = part("called " + *name, "called " + process.name);
    if (unit) text += (name ? ", and it was " : "") + part(place_words(*unit), place_words(process.unit));
    return "The process was " + text +
           ": what it did before counts, too, and names of the policy are those of now.";
}

/// Where there were too many wake-ups to look at each.
std::string samples_remark(const Wakes& wakes) {
    if (wakes.heaviest <= 1) return {};
    return "There are more than some 65,000 wake-ups a second on a CPU: to slow the program less, only a "
           "quarter of the time was watched, and much of it by samples, so that one wake-up stands for up "
           "to " +
           grouped(wakes.heaviest) +
           ", and its pair counts as one that is too seldom unless some ten of them were seen.";
}

} // namespace

std::string headline_of(const SharersReport& report) {
    return fmt::format("{:.1f} s of {} (process {}): {} wake-ups among {}", report.wakes.seconds,
                       report.process.name.empty() ? "-" : report.process.name, report.process.pid,
                       grouped(report.graph.wakes), counted(report.wakes.threads.size(), "thread"));
}

std::string label_of(const SharersReport& report, const Wakes::Thread& thread) {
    const auto found = report.wakes.threads.find(thread);
    const bool is_known = found != report.wakes.threads.end();
    const std::string name = is_known && !found->second.name.empty() ? found->second.name : "-";
    const bool lives = is_known && found->second.index && !report.has_ended;
    return fmt::format("{} ({}{})", name, thread.tid, lives || report.has_ended ? "" : ", ended");
}

std::string rate_text(double per_second) {
    if (per_second >= 9.95) return grouped(static_cast<std::uint64_t>(per_second + 0.5)) + "/s";
    return per_second > 0 && per_second < 0.05 ? "<0.1/s" : fmt::format("{:.1f}/s", per_second);
}

std::vector<std::string> remarks_of(const SharersReport& report) {
    std::vector<std::string> remarks;
    if (report.has_ended) remarks.emplace_back("The process has ended meanwhile.");
    if (auto remark = change_remark(report.process); !remark.empty()) remarks.push_back(std::move(remark));
    if (report.graph.weak_pairs > 0)
        remarks.push_back(fmt::format(
            "{} woke each other too seldom, or too small a part of the time, to belong together ({}).",
            counted(report.graph.weak_pairs, "pair of threads", "pairs of threads"),
            counted(report.graph.weak_wakes, "wake-up")));
    if (auto remark = samples_remark(report.wakes); !remark.empty()) remarks.push_back(std::move(remark));
    if (report.wakes.lost > 0)
        remarks.push_back(counted(report.wakes.lost, "wake-up") +
                          " found no room in the table of pairs and are left out: there are too many pairs.");
    if (report.wakes.unnamed > 0)
        remarks.emplace_back("There are more threads than the table has room for: of some, the name and the "
                             "wake-ups by interrupts and by other programs are not known, so that SHARE is "
                             "too high.");
    for (const auto& remark :
         {pages_remark(report), unnamed_remark(report), index_remark(report), void_remark(report)})
        if (!remark.empty()) remarks.push_back(remark);
    return remarks;
}

using nlohmann::json;

namespace {

json woken_json(const Wakes::Thread& id, const WokenThread& thread, std::optional<unsigned> group) {
    return {{"tid", id.tid},
            {"start_time", id.start_time},
            {"name", thread.name},
            {"index", or_null(thread.index)},
            {"woken_by_interrupts", thread.by_interrupts},
            {"woken_by_others", thread.by_others},
            {"numa_group", or_null(thread.pages_group)},
            {"group", or_null(group)}};
}

json edge_json(const SharerEdge& edge) {
    return {{"one", edge.one.tid},
            {"other", edge.other.tid},
            {"one_start_time", edge.one.start_time},
            {"other_start_time", edge.other.start_time},
            {"one_wakes", edge.one_wakes},
            {"other_wakes", edge.other_wakes},
            {"per_second", edge.rate},
            {"share", edge.share},
            {"sharers", edge.is_sharer},
            {"group", edge.group == 0 ? json() : json(edge.group)}};
}

json group_json(const std::vector<Wakes::Thread>& members, const GroupRule& rule) {
    auto threads = json::array();
    for (const auto& member : members)
        threads.push_back(member.tid);
    json value{{"threads", std::move(threads)}, {"level", rule.level}, {"names", json()}, {"index", json()}};
    value["has_rule"] = rule.choice.has_value();
    if (!rule.choice) return value;
    if (!rule.choice->names.empty()) value["names"] = rule.choice->names;
    if (const auto& index = rule.choice->index) value["index"] = {index->first, index->second};
    return value;
}

} // namespace

json sharers_json(const SharersReport& report) {
    std::map<Wakes::Thread, unsigned> group_of;
    auto groups = json::array();
    for (std::size_t i = 0; i < report.graph.groups.size(); ++i) {
        for (const auto& member : report.graph.groups[i])
            group_of[member] = static_cast<unsigned>(i + 1);
        groups.push_back(group_json(report.graph.groups[i], report.suggestion.rules[i]));
    }
    auto threads = json::array();
    for (const auto& [id, thread] : report.wakes.threads) {
        const auto group = group_of.find(id);
        threads.push_back(
            woken_json(id, thread, group == group_of.end() ? std::nullopt : std::optional(group->second)));
    }
    auto pairs = json::array();
    for (const auto& edge : report.graph.edges)
        pairs.push_back(edge_json(edge));
    return {{"pid", report.process.pid},
            {"name", report.process.name},
            {"unit", or_null(report.process.unit)},
            {"seconds", report.wakes.seconds},
            {"ended", report.has_ended},
            {"wakeups", report.graph.wakes},
            {"sampled", report.wakes.heaviest > 1},
            {"lost", report.wakes.lost},
            {"threads", std::move(threads)},
            {"pairs", std::move(pairs)},
            {"groups", std::move(groups)},
            {"policy", or_null(report.suggestion.policy)},
            {"remarks", remarks_of(report)}};
}

namespace {

constexpr double matrix_left = 230, matrix_top = 130, matrix_side = 640, least_sheet = 900;
constexpr std::size_t most_rows = 64, most_label = 30;

using Cells =
    std::map<std::pair<std::size_t, std::size_t>, std::uint64_t>; ///< (waker's row, wakee's) -> times

/// Threads of groups first, group by group, then others in the order of their strongest pair.
std::vector<Wakes::Thread> rows_of(const SharerGraph& graph) {
    std::vector<Wakes::Thread> rows;
    std::set<Wakes::Thread> known;
    const auto add = [&](const Wakes::Thread& thread) {
        if (rows.size() < most_rows && known.insert(thread).second) rows.push_back(thread);
    };
    for (const auto& group : graph.groups)
        std::ranges::for_each(group, add);
    for (const auto& edge : graph.edges) {
        add(edge.one);
        add(edge.other);
    }
    return rows;
}

Cells cells_of(const Wakes& wakes, const std::vector<Wakes::Thread>& rows) {
    std::map<Wakes::Thread, std::size_t> place;
    for (const auto& thread : rows)
        place.emplace(thread, place.size());
    Cells cells;
    for (const auto& [pair, times] : wakes.pairs) {
        const auto row = place.find(pair.first), column = place.find(pair.second);
        if (row != place.end() && column != place.end()) cells[{row->second, column->second}] = times;
    }
    return cells;
}

/// 12345.0 -> "12k"
std::string short_rate(double rate) {
    if (rate >= 999.5e3) return fmt::format("{:.1f}M", rate / 1e6);
    if (rate >= 9.995e3) return fmt::format("{:.0f}k", rate / 1e3);
    if (rate >= 999.5) return fmt::format("{:.1f}k", rate / 1e3);
    return rate >= 0.5 ? fmt::format("{:.0f}", rate) : "<1";
}

void draw_cells(Svg& svg, const Cells& cells, std::size_t rows, double cell, double seconds) {
    std::uint64_t most = 1;
    for (const auto& [place, times] : cells)
        most = std::max(most, times);
    const auto letters = std::clamp(cell * 0.3, 6.0, 12.0);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t column = 0; column < rows; ++column) {
            const auto found = cells.find({row, column});
            const double x = matrix_left + cell * static_cast<double>(column);
            const double y = matrix_top + cell * static_cast<double>(row);
            const double times = found == cells.end() ? 0 : static_cast<double>(found->second);
            const double strength = std::log1p(times) / std::log1p(static_cast<double>(most));
            svg.rect(x + 0.5, y + 0.5, cell - 1, cell - 1, row == column ? "#e6e6e6" : heat_color(strength));
            if (times > 0 && cell >= 26 && seconds > 0)
                svg.text(x + cell / 2, y + cell / 2 + letters / 3, short_rate(times / seconds), letters,
                         Svg::Anchor::middle);
        }
}

void draw_labels(Svg& svg, const SharersReport& report, const std::vector<Wakes::Thread>& rows, double cell) {
    const auto letters = std::clamp(cell * 0.4, 6.0, 12.0);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const double along = cell * (static_cast<double>(row) + 0.5);
        const auto label = cut(printable(label_of(report, rows[row])), most_label, Page{.unicode = true});
        svg.text(matrix_left - 26, matrix_top + along + letters / 3, label, letters, Svg::Anchor::end);
        const auto number = std::to_string(row + 1);
        svg.text(matrix_left - 6, matrix_top + along + letters / 3, number, letters, Svg::Anchor::end);
        svg.text(matrix_left + along, matrix_top - 6, number, letters, Svg::Anchor::middle);
    }
}

/// A frame around each group that is in the picture as a whole.
void draw_groups(Svg& svg, const SharerGraph& graph, std::size_t rows, double cell) {
    std::size_t first = 0;
    for (const auto& group : graph.groups) {
        if (first + group.size() > rows) return;
        const double from = cell * static_cast<double>(first);
        const double to = from + cell * static_cast<double>(group.size());
        const auto line = [&](double x1, double y1, double x2, double y2) {
            svg.line(matrix_left + x1, matrix_top + y1, matrix_left + x2, matrix_top + y2, "#b3261e", 2);
        };
        line(from, from, to, from);
        line(from, to, to, to);
        line(from, from, from, to);
        line(to, from, to, to);
        first += group.size();
    }
}

std::vector<std::string> notes_below(const SharersReport& report, std::size_t rows) {
    std::vector<std::string> sentences;
    std::set<Wakes::Thread> known;
    for (const auto& edge : report.graph.edges)
        known.insert({edge.one, edge.other});
    if (known.size() > rows)
        sentences.push_back(
            fmt::format("{} more threads that share less are left out.", known.size() - rows));
    for (const auto& remark : remarks_of(report))
        sentences.push_back(printable(remark));
    return note_lines(sentences, least_sheet - 48, 11);
}

} // namespace

std::string sharers_svg(const SharersReport& report) {
    const auto rows = rows_of(report.graph);
    const auto cells = cells_of(report.wakes, rows);
    const double cell =
        std::clamp(matrix_side / static_cast<double>(std::max<std::size_t>(rows.size(), 1)), 10.0, 60.0);
    const double bottom = matrix_top + cell * static_cast<double>(rows.size());
    const auto notes = notes_below(report, rows.size());
    Svg svg(std::max(least_sheet, matrix_left + cell * static_cast<double>(rows.size()) + 40),
            bottom + 40 + note_leading * static_cast<double>(notes.size()), "Which threads wake each other");
    svg.text(24, 28, headline_of(report), 17);
    svg.text(24, 50,
             "Rows wake columns, per second; the darker the more often (logarithmic). Framed: threads that "
             "belong together.",
             12);
    svg.text(
        24, 68,
        "Only waits for futexes, pipes, sockets and the like count; wake-ups by interrupts are no thread's.",
        12);
    draw_cells(svg, cells, rows.size(), cell, report.wakes.seconds);
    draw_labels(svg, report, rows, cell);
    draw_groups(svg, report.graph, rows.size(), cell);
    draw_notes(svg, 24, bottom + 12, notes, 11);
    return svg.finish();
}

} // namespace affinityctl
