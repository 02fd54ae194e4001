// SPDX-License-Identifier: Apache-2.0
// Threads that belong together, and the policy that keeps them so.
#include "affinityctl/sharers/report.hpp"
#include "base/text.hpp"
#include "policy/pattern.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace {

// Fewer are chance, or no reason to put threads together: programs start and end threads, wait for rare
// locks, and log.
constexpr std::uint64_t least_wakes = 10;  // of a pair, both ways
constexpr double least_rate = 1;           // of a pair per second, both ways
constexpr double least_share = 0.01;       // of all wake-ups of one of the two
constexpr double part_of_strongest = 0.25; // of each one's strongest pair: puts two into one group
constexpr std::size_t most_names = 32;     // in one rule; a longer list is not read
constexpr std::size_t few_names = 2;       // so many are listed, also where one pattern would do
constexpr std::size_t most_commented = 4;  // threads that a comment names

using Thread = Wakes::Thread;
using Threads = std::map<Thread, WokenThread>;

double fraction(std::uint64_t of, std::uint64_t all) {
    return all == 0 ? 0 : static_cast<double>(of) / static_cast<double>(all);
}

/// Each pair once, strongest first.
std::vector<SharerEdge> edges_of(const Wakes& wakes) {
    std::map<std::pair<Thread, Thread>, SharerEdge> edges;
    std::map<Thread, std::uint64_t> woken;
    for (const auto& [id, thread] : wakes.threads)
        woken[id] = thread.by_interrupts + thread.by_others;
    for (const auto& [pair, times] : wakes.pairs) {
        const auto [one, other] = std::minmax(pair.first, pair.second);
        auto& edge = edges[{one, other}];
        edge.one = one;
        edge.other = other;
        (pair.first == one ? edge.one_wakes : edge.other_wakes) += times;
        woken[pair.second] += times;
    }
    std::vector<SharerEdge> list;
    for (auto& [pair, edge] : edges) {
        edge.rate = wakes.seconds > 0 ? static_cast<double>(edge.wakes()) / wakes.seconds : 0;
        edge.share = std::max(fraction(edge.other_wakes, woken[edge.one]),
                              fraction(edge.one_wakes, woken[edge.other]));
        edge.is_sharer = edge.wakes() >= least_wakes && edge.rate >= least_rate && edge.share >= least_share;
        list.push_back(edge);
    }
    std::ranges::stable_sort(list, std::greater{}, &SharerEdge::wakes);
    return list;
}

void group_threads(SharerGraph& graph) {
    std::map<Thread, std::uint64_t> strongest;
    for (const auto& edge : graph.edges)
        if (edge.is_sharer)
            for (const auto& thread : {edge.one, edge.other})
                strongest[thread] = std::max(strongest[thread], edge.wakes());
    // Each of the threads that hang together knows a lower one; the lowest is their root.
    std::map<Thread, Thread> lower;
    const auto root_of = [&](Thread at) {
        for (auto found = lower.find(at); found != lower.end(); found = lower.find(at))
            at = found->second;
        return at;
    };
    for (const auto& edge : graph.edges) {
        const auto most = std::max(strongest[edge.one], strongest[edge.other]);
        if (!edge.is_sharer || fraction(edge.wakes(), most) < part_of_strongest) continue;
        const auto [low, high] = std::minmax({root_of(edge.one), root_of(edge.other)});
        if (low != high) lower.emplace(high, low);
    }
    std::map<Thread, std::vector<Thread>> members;
    for (const auto& [thread, most] : strongest)
        members[root_of(thread)].push_back(thread);
    std::map<Thread, unsigned> numbers;
    for (auto& edge : graph.edges) {
        const auto root = root_of(edge.one);
        if (!edge.is_sharer || root != root_of(edge.other)) continue;
        const auto [number, is_new] = numbers.try_emplace(root, graph.groups.size() + 1);
        if (is_new) graph.groups.push_back(members[root]);
        edge.group = number->second;
    }
}

/// With an index, those of the members that have ended do not count.
bool means_exactly(const ThreadChoice& choice, const Threads& threads, const std::set<Thread>& members) {
    std::vector<affinityd::policy::Pattern> patterns;
    for (const auto& text : choice.names)
        if (const auto pattern = affinityd::policy::Pattern::parse(text))
            patterns.push_back(pattern->of_name());
    return std::ranges::all_of(threads, [&](const auto& entry) {
        const auto& [id, thread] = entry;
        if (choice.index && !thread.index) return true;
        const bool is_named = choice.names.empty() || std::ranges::any_of(patterns, [&](const auto& pattern) {
                                  return pattern.matches(thread.name);
                              });
        const bool is_placed =
            !choice.index || (*thread.index >= choice.index->first && *thread.index <= choice.index->second);
        return (is_named && is_placed) == members.contains(id);
    });
}

/// Patterns for the names, the best first.
std::vector<std::vector<std::string>> ways_to_name(const std::set<std::string>& names) {
    std::vector<std::vector<std::string>> ways;
    if (names.empty() || names.contains("")) return ways;
    std::vector<std::string> list;
    for (const auto& name : names)
        list.push_back(name_pattern(name));
    if (names.size() <= few_names) ways.push_back(list);
    // Without digits at its end: "io-thread-" of io-thread-1 and io-thread-12.
    const auto& first = *names.begin();
    std::string beginning(first.begin(), std::ranges::mismatch(first, *names.rbegin()).in1);
    while (!beginning.empty() && affinityd::is_digit(beginning.back()))
        beginning.pop_back();
    if (names.size() > 1 && !beginning.empty()) ways.push_back({name_pattern(beginning) + "*"});
    if (names.size() > few_names && names.size() <= most_names) ways.push_back(list);
    return ways;
}

struct PlaceLevel {
    std::string name;
    std::size_t widest = 0; ///< CPUs of its largest group
};

std::vector<PlaceLevel> place_levels(const affinityd::topology::Topology& topology) {
    std::vector<affinityd::CpuSet> nodes;
    for (const auto& node : topology.nodes)
        nodes.push_back(node.cpus);
    std::vector<PlaceLevel> levels;
    for (const auto& [name, groups] : {std::pair{"llc", topology.llc_groups()}, std::pair{"node", nodes},
                                       std::pair{"socket", topology.packages}}) {
        PlaceLevel level{name};
        for (const auto& group : groups)
            level.widest = std::max<std::size_t>(level.widest, group.count());
        if (level.widest > 0) levels.push_back(level);
    }
    return levels;
}

std::string in_yaml_quotes(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += c;
    }
    return quoted + "\"";
}

/// Printable ASCII: a name that is pasted somewhere does nothing there.
std::string plain_name(const std::string& name) {
    std::string text = name.empty() ? "-" : name;
    for (char& c : text)
        if (c < ' ' || c > '~') c = '?';
    return text;
}

std::string rule_text(const Wakes& wakes, const std::vector<Thread>& members, const GroupRule& rule) {
    std::string text = "  # ";
    for (std::size_t i = 0; i < std::min(members.size(), most_commented); ++i)
        text += (i == 0 ? "" : ", ") +
                fmt::format("{} ({})", plain_name(wakes.threads.at(members[i]).name), members[i].tid);
    if (members.size() > most_commented) text += fmt::format(" and {} more", members.size() - most_commented);
    if (!rule.choice) return text + ": no rule can mean these alone, as other threads have their names\n";
    text += "\n  - {";
    std::vector<std::string> names;
    for (const auto& name : rule.choice->names)
        names.push_back(in_yaml_quotes(name));
    if (names.size() == 1) text += "name: " + names[0] + ", ";
    if (names.size() > 1) text += fmt::format("name: [{}], ", fmt::join(names, ", "));
    if (const auto& index = rule.choice->index)
        text += fmt::format("index: {}-{}, ", index->first, index->second);
    return text + fmt::format("spread: any, bind: {}}}\n", rule.level);
}

} // namespace

SharerGraph graph_of(const Wakes& wakes) {
    SharerGraph graph{.edges = edges_of(wakes), .groups = {}};
    for (const auto& edge : graph.edges) {
        graph.wakes += edge.wakes();
        if (edge.is_sharer) continue;
        ++graph.weak_pairs;
        graph.weak_wakes += edge.wakes();
    }
    group_threads(graph);
    return graph;
}

std::string name_pattern(std::string_view name) {
    std::string pattern;
    for (const char c : name) {
        const bool is_special = c == '*' || c == '?' || c == '[' || c == '\\';
        const bool may_be_expression = c == '/' && pattern.empty();
        if (is_special || may_be_expression) pattern += '\\';
        pattern += c >= ' ' && c <= '~' ? c : '?';
    }
    return pattern;
}

std::optional<ThreadChoice> choose_threads(const Threads& threads, const std::vector<Thread>& members) {
    const std::set<Thread> wanted(members.begin(), members.end());
    std::set<std::string> names;
    std::set<unsigned> places;
    for (const auto& id : wanted) {
        names.insert(threads.at(id).name);
        if (const auto& index = threads.at(id).index) places.insert(*index);
    }
    std::vector<ThreadChoice> choices;
    const auto ways = ways_to_name(names);
    for (const auto& way : ways)
        choices.push_back({way, {}});
    if (places.size() >= 2) {
        const std::pair range{*places.begin(), *places.rbegin()};
        choices.push_back({{}, range});
        for (const auto& way : ways)
            choices.push_back({way, range});
    }
    const auto found = std::ranges::find_if(
        choices, [&](const ThreadChoice& choice) { return means_exactly(choice, threads, wanted); });
    return found == choices.end() ? std::nullopt : std::optional(*found);
}

Suggestion suggestion_for(const WatchedProcess& process, const Wakes& wakes, const SharerGraph& graph,
                          const affinityd::topology::Topology& topology) {
    Suggestion suggestion;
    const auto levels = place_levels(topology);
    bool has_rule = false, is_void = true;
    std::size_t narrowest = levels.size();
    for (const auto& group : graph.groups) {
        // The narrowest with room for all, else the widest.
        auto level =
            std::ranges::find_if(levels, [&](const auto& one) { return one.widest >= group.size(); });
        if (level == levels.end()) level = std::ranges::max_element(levels, {}, &PlaceLevel::widest);
        suggestion.rules.push_back(
            {level == levels.end() ? "llc" : level->name, choose_threads(wakes.threads, group)});
        narrowest = std::min(narrowest, static_cast<std::size_t>(level - levels.begin()));
        is_void = is_void && (level == levels.end() || level->widest == topology.online.count());
        has_rule = has_rule || suggestion.rules.back().choice.has_value();
    }
    if (is_void && narrowest < levels.size()) suggestion.void_level = levels[narrowest].name;
    const auto is_in_first = [&](const auto& entry) {
        return !entry.second.index || std::ranges::binary_search(graph.groups.front(), entry.first);
    };
    suggestion.is_together = graph.groups.size() == 1 && std::ranges::all_of(wakes.threads, is_in_first);
    if (process.name.empty() && process.unit.empty()) return suggestion;
    if (!has_rule && !suggestion.is_together) return suggestion;
    suggestion.policy = fmt::format(
        "# affinityctl sharers: {:.1f} s of {} (process {})\nversion: 1\n"
        "description: threads that wake each other share a cache\nmatch: {{{}: {}}}\n",
        wakes.seconds, plain_name(process.name), process.pid, process.unit.empty() ? "comm" : "unit",
        in_yaml_quotes(name_pattern(process.unit.empty() ? process.name : process.unit)));
    if (suggestion.is_together) {
        suggestion.policy += "together: " + suggestion.rules.front().level + "\n";
        return suggestion;
    }
    suggestion.policy += "threads:\n";
    for (std::size_t i = 0; i < graph.groups.size(); ++i)
        suggestion.policy += rule_text(wakes, graph.groups[i], suggestion.rules[i]);
    return suggestion;
}

} // namespace affinityctl
