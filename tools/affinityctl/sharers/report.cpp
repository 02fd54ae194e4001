// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/report.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::counted;
using affinityd::grouped;
using nlohmann::json;

namespace {

constexpr std::size_t most_edges = 20, most_groups_shown = 12, most_members = 8, most_rows = 64;

/// All that `sharers` shows.
struct SharersReport {
    const WatchedProcess& process;
    const Wakes& wakes;
    bool has_ended = false;
    SharerGraph graph;
    Suggestion suggestion;
};

/// Another program was executed, or the process went elsewhere: the policy means what it is now.
std::string change_remark(const WatchedProcess& process) {
    const auto place = [](const std::string& unit) { return unit.empty() ? "in no service" : "in " + unit; };
    const auto part = [](const std::string& before, const std::string& now) {
        return before + " when the watch began and is " + now + " now";
    };
    std::string text;
    if (process.name != process.first_name)
        text = part("called " + process.first_name, "called " + process.name);
    if (process.unit != process.first_unit)
        text += (text.empty() ? "" : ", and it was ") + part(place(process.first_unit), place(process.unit));
    return text.empty() ? ""
                        : "The process was " + text +
                              ": what it did before counts, too, and names of the policy are those of now.";
}

std::vector<std::string> sharers_remarks(const SharersReport& report) {
    const auto& [process, wakes, has_ended, graph, suggestion] = report;
    std::vector<std::string> remarks;
    const auto say = [&](bool is_so, const std::string& sentence) {
        if (is_so) remarks.push_back(sentence);
    };
    say(has_ended, "The process has ended meanwhile.");
    const auto change = change_remark(process);
    say(!change.empty(), change);
    say(graph.weak_pairs > 0,
        fmt::format(
            "{} woke each other too seldom, or too small a part of the time, to belong together ({}).",
            counted(graph.weak_pairs, "pair of threads", "pairs of threads"),
            counted(graph.weak_wakes, "wake-up")));
    say(wakes.lost > 0, counted(wakes.lost, "wake-up") + " found no room in the table of pairs and are left "
                                                         "out: there are too many pairs.");
    const auto without =
        std::ranges::count_if(suggestion.rules, [](const GroupRule& rule) { return !rule.choice; });
    say(without > 0 && !suggestion.is_together,
        fmt::format("For {} there is no rule: other threads have the same names, and their places are not in "
                    "a row. Threads that are named apart can be told apart.",
                    counted(static_cast<std::uint64_t>(without), "group")));
    if (suggestion.policy.empty()) return remarks;
    const bool has_index = std::ranges::any_of(
        suggestion.rules, [](const GroupRule& rule) { return rule.choice && rule.choice->index; });
    say(has_index && !suggestion.is_together,
        "Rules with index hold as long as the program makes its threads "
        "in the same order, and none before them ends.");
    const auto& level = suggestion.void_level;
    say(!level.empty(), fmt::format("On this machine {} little: all its CPUs {}.",
                                    suggestion.is_together ? "the policy changes" : "the rules change",
                                    level == "llc" ? "share one cache group" : "are of one " + level));
    return remarks;
}

std::string label_of(const SharersReport& report, const Wakes::Thread& thread) {
    const auto found = report.wakes.threads.find(thread);
    const bool is_known = found != report.wakes.threads.end();
    const bool has_ended = !report.has_ended && !(is_known && found->second.index);
    return fmt::format("{} ({}{})", is_known && !found->second.name.empty() ? found->second.name : "-",
                       thread.tid, has_ended ? ", ended" : "");
}

std::string rate_text(double per_second) {
    if (per_second >= 9.95) return grouped(static_cast<std::uint64_t>(per_second + 0.5)) + "/s";
    return per_second > 0 && per_second < 0.05 ? "<0.1/s" : fmt::format("{:.1f}/s", per_second);
}

std::string percent_of(const json& edge) {
    return fmt::format("{:.0f}%", edge.at("share").get<double>() * 100);
}

// clang-format off
constexpr Field woken_fields[] = {
    {"tid", "", "count", "thread id"},
    {"start_time", "", "count", "clock ticks since boot: tells threads of one id apart"},
    {"name", "", "text", "as last seen"},
    {"index", "", "count?", "its place among the living threads; null: it has ended"},
    {"woken_by_interrupts", "", "count", "times, by timers and devices"},
    {"woken_by_others", "", "count", "times, by other processes and the kernel"},
    {"group", "", "count?", "of groups, from 1; null: none"},
};
constexpr Field edge_fields[] = {
    {"one", "", "count", "thread id"},
    {"", "THREAD", "text", "", {}, [](const json& row) { return text_of(row, "one_label"); }},
    {"other", "", "count", "thread id"},
    {"", "AND THREAD", "text", "", {}, [](const json& row) { return text_of(row, "other_label"); }},
    {"one_start_time", "", "count", "as start_time of threads"},
    {"other_start_time", "", "count", "as start_time of threads"},
    {"one_wakes", "", "count", "times that one woke the other"},
    {"", "WAKES IT", "text", "", {}, [](const json& row) { return text_of(row, "one_rate"); }},
    {"other_wakes", "", "count", "times the other way"},
    {"", "IS WOKEN", "text", "", {}, [](const json& row) { return text_of(row, "other_rate"); }},
    {"per_second", "", "number", "both ways"},
    {"share", "SHARE", "number", "of all wake-ups of one of the two, the part that comes from the other", {}, percent_of},
    {"sharers", "", "flag", "often enough to belong together"},
    {"group", "GROUP", "count?", "that both are in"},
};
constexpr Field group_fields[] = {
    {"", "GROUP", "text", "", {}, [](const json& row) { return text_of(row, "number"); }},
    {"", "THREADS", "text", "", {}, [](const json& row) { return text_of(row, "labels"); }},
    {"threads", "", "count[]", "thread ids"},
    {"level", "", "text", "llc, node or socket: where it has a CPU for each"},
    {"has_rule", "", "flag", "a rule can mean these threads alone"},
    {"names", "", "text[]?", "patterns of the rule"},
    {"index", "", "count[]?", "first and last of the rule"},
};
constexpr Field sharers_fields[] = {
    {"pid", "", "count", "of the process"},
    {"name", "", "text", "of the process"},
    {"unit", "", "text?", "its system service"},
    {"seconds", "", "number", "that it was watched"},
    {"ended", "", "flag", "the process, meanwhile"},
    {"wakeups", "", "count", "of all pairs"},
    {"lost", "", "count", "wake-ups that found no room in the table of pairs"},
    {"threads", "", "object[]", "that were woken or woke others", woken_fields},
    {"pairs", "", "object[]", "strongest first", edge_fields},
    {"groups", "", "object[]", "threads that belong together", group_fields},
    {"policy", "", "text?", "a policy file that follows"},
    {"remarks", "", "text[]", "sentences"},
};
// clang-format on

json sharers_value(const SharersReport& report, const std::vector<std::string>& remarks) {
    const auto& [process, wakes, has_ended, graph, suggestion] = report;
    std::map<Wakes::Thread, std::size_t> group_of;
    json groups = json::array(), threads = json::array(), pairs = json::array();
    for (std::size_t i = 0; i < graph.groups.size(); ++i) {
        const auto& [level, choice] = suggestion.rules[i];
        json members = json::array(), names, index;
        for (const auto& member : graph.groups[i]) {
            group_of[member] = i + 1;
            members.push_back(member.tid);
        }
        if (choice && !choice->names.empty()) names = choice->names;
        if (choice && choice->index) index = {choice->index->first, choice->index->second};
        groups.push_back(record(group_fields, {std::move(members), level, choice.has_value(),
                                               std::move(names), std::move(index)}));
    }
    for (const auto& [id, thread] : wakes.threads)
        threads.push_back(record(woken_fields, {id.tid, id.start_time, thread.name, or_null(thread.index),
                                                thread.by_interrupts, thread.by_others,
                                                group_of.contains(id) ? json(group_of[id]) : json()}));
    for (const auto& edge : graph.edges)
        pairs.push_back(
            record(edge_fields, {edge.one.tid, edge.other.tid, edge.one.start_time, edge.other.start_time,
                                 edge.one_wakes, edge.other_wakes, edge.rate, edge.share, edge.is_sharer,
                                 edge.group == 0 ? json() : json(edge.group)}));
    return record(sharers_fields, {process.pid, process.name, or_null(process.unit), wakes.seconds, has_ended,
                                   graph.wakes, wakes.lost, std::move(threads), std::move(pairs),
                                   std::move(groups), or_null(suggestion.policy), remarks});
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

/// 12345.0 -> "12k"
std::string short_rate(double rate) {
    if (rate >= 999.5e3) return fmt::format("{:.1f}M", rate / 1e6);
    if (rate >= 9.995e3) return fmt::format("{:.0f}k", rate / 1e3);
    if (rate >= 999.5) return fmt::format("{:.1f}k", rate / 1e3);
    return rate >= 0.5 ? fmt::format("{:.0f}", rate) : "<1";
}

/// Which thread wakes which, per second: threads of groups first, group by group, then others in the order of
/// their strongest pair. If there are many threads, those that share most.
void add_map(Document& document, const SharersReport& report) {
    std::vector<Wakes::Thread> rows;
    std::set<Wakes::Thread> known;
    const auto add = [&](const Wakes::Thread& thread) {
        if (known.insert(thread).second && rows.size() < most_rows) rows.push_back(thread);
    };
    for (const auto& group : report.graph.groups)
        std::ranges::for_each(group, add);
    for (const auto& edge : report.graph.edges) {
        add(edge.one);
        add(edge.other);
    }
    if (rows.empty() || report.wakes.seconds <= 0) return;
    const auto times_of = [&](const Wakes::Thread& waker, const Wakes::Thread& wakee) {
        const auto found = report.wakes.pairs.find({waker, wakee});
        return found == report.wakes.pairs.end() ? 0.0 : static_cast<double>(found->second);
    };
    double most = 1;
    for (const auto& waker : rows)
        for (const auto& wakee : rows)
            most = std::max(most, times_of(waker, wakee));
    Document::Grid grid{.note = "Rows wake columns, per second; the darker the more often (logarithmic). "
                                "Only waits for futexes, pipes, sockets and the "
                                "like count; wake-ups by interrupts are no thread's.",
                        .rows = {},
                        .columns = {},
                        .shares = {}};
    for (const auto& waker : rows) {
        const auto number = std::to_string(grid.rows.size() + 1);
        grid.rows.push_back(label_of(report, waker) + " " + number);
        grid.columns.push_back(number);
        auto& shares = grid.shares.emplace_back();
        auto& texts = grid.texts.emplace_back();
        for (const auto& wakee : rows) {
            const double times = times_of(waker, wakee);
            shares.push_back(waker == wakee ? std::nullopt
                                            : std::optional(std::log1p(times) / std::log1p(most)));
            texts.push_back(times > 0 ? short_rate(times / report.wakes.seconds) : "");
        }
    }
    document
        .add(
            Document::Map{.title = "Which threads wake each other", .corner = "", .grids = {std::move(grid)}},
            Document::Where::picture)
        .gap = true;
    if (known.size() > rows.size())
        document
            .line(fmt::format("{} more threads that share less are left out.", known.size() - rows.size()))
            .where = Document::Where::picture;
}

} // namespace

const Fields sharers_answer = sharers_fields;

Document sharers_document(const WatchedProcess& process, const Wakes& wakes, bool has_ended,
                          const affinityd::topology::Topology& topology) {
    SharersReport report{process, wakes, has_ended, graph_of(wakes), {}};
    report.suggestion = suggestion_for(process, wakes, report.graph, topology);
    const auto remarks = sharers_remarks(report);
    Document document;
    document.by_columns = true;
    document.value = sharers_value(report, remarks);
    document.title = fmt::format("{:.1f} s of {} (process {}): {} wake-ups among {}", wakes.seconds,
                                 process.name.empty() ? "-" : process.name, process.pid,
                                 grouped(report.graph.wakes), counted(wakes.threads.size(), "thread"));
    document.line(document.title).where = Document::Where::text;
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
