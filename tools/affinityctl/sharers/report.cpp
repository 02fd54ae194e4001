// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/report.hpp"

#include "affinityctl/present/document.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::counted;
using affinityd::grouped;
using nlohmann::json;

namespace {

constexpr std::size_t most_edges = 20, most_groups_shown = 12, most_members = 8, most_rows = 64;

/// Shared pages that the kernel saw; "" where it is not asked to look.
std::string pages_remark(const SharersReport& report) {
    if (report.hinting == NumaHinting::off)
        return "Shared memory is seen only where one thread wakes another: NUMA hinting is off here (one "
               "node, or "
               "kernel.numa_balancing=0).";
    if (report.hinting == NumaHinting::hidden && report.has_ended) return {}; // no thread is left to be asked
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

std::vector<std::string> sharers_remarks(const SharersReport& report) {
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

const Field woken_fields[] = {
    {"tid", "", "count", "thread id"},
    {"start_time", "", "count", "clock ticks since boot: tells threads of one id apart"},
    {"name", "", "text", "as last seen"},
    {"index", "", "count?", "its place among the living threads; null: it has ended"},
    {"woken_by_interrupts", "", "count", "times, by timers and devices"},
    {"woken_by_others", "", "count", "times, by other processes and the kernel"},
    {"numa_group", "", "count?", "threads of one number have touched the same pages"},
    {"group", "", "count?", "of groups, from 1; null: none"}};
const Field edge_fields[] = {
    {"one", "THREAD", "count", "thread id", {}, [](const json& row) { return cell(row.at("one_label")); }},
    {"other",
     "AND THREAD",
     "count",
     "thread id",
     {},
     [](const json& row) { return cell(row.at("other_label")); }},
    {"one_start_time", "", "count", "as start_time of threads"},
    {"other_start_time", "", "count", "as start_time of threads"},
    {"one_wakes",
     "WAKES IT",
     "count",
     "times that one woke the other",
     {},
     [](const json& row) { return cell(row.at("one_rate")); }},
    {"other_wakes",
     "IS WOKEN",
     "count",
     "times the other way",
     {},
     [](const json& row) { return cell(row.at("other_rate")); }},
    {"per_second", "", "number", "both ways"},
    {"share",
     "SHARE",
     "number",
     "of all wake-ups of one of the two, the part that comes from the other",
     {},
     [](const json& row) { return fmt::format("{:.0f}%", row.at("share").get<double>() * 100); }},
    {"sharers", "", "flag", "often enough to belong together"},
    {"group", "GROUP", "count?", "that both are in"},
};
const Field group_fields[] = {
    {"", "GROUP", "text", "", {}, [](const json& row) { return cell(row.at("number")); }},
    {"threads",
     "THREADS",
     "count[]",
     "thread ids",
     {},
     [](const json& row) { return cell(row.at("labels")); }},
    {"level", "", "text", "llc, node or socket: where it has a CPU for each"},
    {"has_rule", "", "flag", "a rule can mean these threads alone"},
    {"names", "", "text[]?", "patterns of the rule"},
    {"index", "", "count[]?", "first and last of the rule"}};
const Field sharers_fields[] = {{"pid", "", "count", "of the process"},
                                {"name", "", "text", "of the process"},
                                {"unit", "", "text?", "its system service"},
                                {"seconds", "", "number", "that it was watched"},
                                {"ended", "", "flag", "the process, meanwhile"},
                                {"wakeups", "", "count", "of all pairs"},
                                {"sampled", "", "flag", "one that was seen may stand for several"},
                                {"lost", "", "count", "wake-ups that found no room in the table of pairs"},
                                {"threads", "", "object[]", "that were woken or woke others", woken_fields},
                                {"pairs", "", "object[]", "strongest first", edge_fields},
                                {"groups", "", "object[]", "threads that belong together", group_fields},
                                {"policy", "", "text?", "a policy file that follows"},
                                {"remarks", "", "text[]", "sentences"}};

json group_json(const std::vector<Wakes::Thread>& members, const GroupRule& rule) {
    json threads = json::array(), names, index;
    for (const auto& member : members)
        threads.push_back(member.tid);
    if (rule.choice && !rule.choice->names.empty()) names = rule.choice->names;
    if (rule.choice && rule.choice->index) index = {rule.choice->index->first, rule.choice->index->second};
    return record(group_fields, {std::move(threads), rule.level, rule.choice.has_value(), std::move(names),
                                 std::move(index)});
}

json sharers_value(const SharersReport& report, const std::vector<std::string>& remarks) {
    std::map<Wakes::Thread, unsigned> group_of;
    json groups = json::array(), threads = json::array(), pairs = json::array();
    for (std::size_t i = 0; i < report.graph.groups.size(); ++i) {
        for (const auto& member : report.graph.groups[i])
            group_of[member] = static_cast<unsigned>(i + 1);
        groups.push_back(group_json(report.graph.groups[i], report.suggestion.rules[i]));
    }
    for (const auto& [id, thread] : report.wakes.threads) {
        const auto group = group_of.find(id);
        threads.push_back(
            record(woken_fields, {id.tid, id.start_time, thread.name, or_null(thread.index),
                                  thread.by_interrupts, thread.by_others, or_null(thread.pages_group),
                                  group == group_of.end() ? json() : json(group->second)}));
    }
    for (const auto& edge : report.graph.edges)
        pairs.push_back(
            record(edge_fields, {edge.one.tid, edge.other.tid, edge.one.start_time, edge.other.start_time,
                                 edge.one_wakes, edge.other_wakes, edge.rate, edge.share, edge.is_sharer,
                                 edge.group == 0 ? json() : json(edge.group)}));
    return record(sharers_fields,
                  {report.process.pid, report.process.name, or_null(report.process.unit),
                   report.wakes.seconds, report.has_ended, report.graph.wakes, report.wakes.heaviest > 1,
                   report.wakes.lost, std::move(threads), std::move(pairs), std::move(groups),
                   or_null(report.suggestion.policy), remarks});
}

void add_edges(Document& document, const SharersReport& report) {
    Document::Table table{.fields = edge_fields};
    std::size_t sharers = 0;
    const auto rate = [&](std::uint64_t times) {
        return rate_text(report.wakes.seconds > 0 ? static_cast<double>(times) / report.wakes.seconds : 0);
    };
    for (std::size_t i = 0; i < report.graph.edges.size(); ++i) {
        const auto& edge = report.graph.edges[i];
        if (!edge.is_sharer || ++sharers > most_edges) continue;
        table.rows.push_back(document.value["pairs"][i]);
        table.rows.back().update({{"one_label", label_of(report, edge.one)},
                                  {"other_label", label_of(report, edge.other)},
                                  {"one_rate", rate(edge.one_wakes)},
                                  {"other_rate", rate(edge.other_wakes)}});
    }
    if (sharers == 0) {
        document.line("No two of its threads wake each other so often that they belong together.");
        return;
    }
    document.add(std::move(table)).gap = true;
    if (sharers > most_edges) document.line(fmt::format("and {} more pairs", grouped(sharers - most_edges)));
    document.line("SHARE: of all wake-ups of one of the two, those by timers, devices and other programs "
                  "included, the part that comes from the other.");
}

void add_groups(Document& document, const SharersReport& report) {
    const auto& groups = report.graph.groups;
    Document::Table table{.fields = group_fields};
    for (std::size_t i = 0; i < std::min(groups.size(), most_groups_shown); ++i) {
        std::string members;
        for (std::size_t at = 0; at < std::min(groups[i].size(), most_members); ++at)
            members += (at == 0 ? "" : ", ") + label_of(report, groups[i][at]);
        if (groups[i].size() > most_members)
            members += fmt::format(" and {} more", groups[i].size() - most_members);
        table.rows.push_back({{"number", i + 1}, {"labels", members}});
    }
    if (groups.empty()) return;
    document.add(std::move(table)).gap = true;
    if (groups.size() > most_groups_shown)
        document.line(fmt::format("and {} more groups", groups.size() - most_groups_shown));
}

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

/// Which thread wakes which, per second. If there are many threads, those that share most.
void add_map(Document& document, const SharersReport& report) {
    const auto rows = rows_of(report.graph);
    if (rows.empty() || report.wakes.seconds <= 0) return;
    const auto cells = cells_of(report.wakes, rows);
    std::uint64_t most = 1;
    for (const auto& [place, times] : cells)
        most = std::max(most, times);
    Document::Grid grid{.note = "Rows wake columns, per second; the darker the more often (logarithmic). "
                                "Only waits for futexes, pipes, sockets and the "
                                "like count; wake-ups by interrupts are no thread's.",
                        .rows = {},
                        .columns = {},
                        .shares = {}};
    for (std::size_t row = 0; row < rows.size(); ++row) {
        grid.rows.push_back(fmt::format("{} {}", label_of(report, rows[row]), row + 1));
        grid.columns.push_back(std::to_string(row + 1));
        auto& shares = grid.shares.emplace_back();
        auto& texts = grid.texts.emplace_back();
        for (std::size_t column = 0; column < rows.size(); ++column) {
            const auto found = cells.find({row, column});
            const double times = found == cells.end() ? 0 : static_cast<double>(found->second);
            shares.push_back(row == column
                                 ? std::nullopt
                                 : std::optional(std::log1p(times) / std::log1p(static_cast<double>(most))));
            texts.push_back(times > 0 ? short_rate(times / report.wakes.seconds) : "");
        }
    }
    document
        .add(
            Document::Map{.title = "Which threads wake each other", .corner = "", .grids = {std::move(grid)}},
            Document::Where::picture)
        .gap = true;
    std::set<Wakes::Thread> known;
    for (const auto& edge : report.graph.edges)
        known.insert({edge.one, edge.other});
    if (known.size() > rows.size())
        document.add(Document::Line{{{fmt::format("{} more threads that share less are left out.",
                                                  known.size() - rows.size())}}},
                     Document::Where::picture);
}

} // namespace

const Fields sharers_answer = sharers_fields;

Document sharers_document(const SharersReport& report) {
    const auto remarks = sharers_remarks(report);
    Document document;
    document.by_columns = true;
    document.value = sharers_value(report, remarks);
    document.title = headline_of(report);
    document.add(Document::Line{{{document.title}}}, Document::Where::text);
    add_edges(document, report);
    add_groups(document, report);
    add_map(document, report);
    for (const auto& remark : remarks)
        document.line(remark).gap = &remark == &remarks.front();
    if (report.suggestion.policy.empty()) return document;
    document.heading("As a policy").gap = true;
    auto policy = report.suggestion.policy;
    policy.pop_back(); // its last line end
    document.add(Document::Line{.spans = {{policy}}, .as_is = true});
    return document;
}

} // namespace affinityctl
