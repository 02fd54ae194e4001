// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/suggestion.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::topology::Topology;

constexpr std::size_t most_commented = 4; ///< threads that a comment names

struct PlaceLevel {
    std::string name;
    std::size_t widest = 0; ///< CPUs of its largest group
    bool is_all = false;    ///< one group has all CPUs
};

std::vector<PlaceLevel> place_levels(const Topology& topology) {
    std::vector<affinityd::CpuSet> nodes;
    for (const auto& node : topology.nodes)
        nodes.push_back(node.cpus);
    std::vector<PlaceLevel> levels;
    for (const auto& [name, groups] : {std::pair{"llc", topology.llc_groups()}, std::pair{"node", nodes},
                                       std::pair{"socket", topology.packages}}) {
        PlaceLevel level{name};
        for (const auto& group : groups)
            level.widest = std::max<std::size_t>(level.widest, group.count());
        level.is_all = level.widest == topology.online.count();
        if (level.widest > 0) levels.push_back(level);
    }
    return levels;
}

/// The narrowest with room for so many threads, else the widest.
PlaceLevel level_for(const std::vector<PlaceLevel>& levels, std::size_t threads) {
    for (const auto& level : levels)
        if (level.widest >= threads) return level;
    const auto widest = std::ranges::max_element(levels, {}, &PlaceLevel::widest);
    return widest == levels.end() ? PlaceLevel{"llc", 0, true} : *widest;
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

std::string members_text(const Wakes& wakes, const std::vector<Wakes::Thread>& members) {
    std::string text;
    for (std::size_t i = 0; i < std::min(members.size(), most_commented); ++i)
        text += (i == 0 ? "" : ", ") +
                fmt::format("{} ({})", plain_name(wakes.threads.at(members[i]).name), members[i].tid);
    if (members.size() > most_commented) text += fmt::format(" and {} more", members.size() - most_commented);
    return text;
}

std::string conditions_text(const ThreadChoice& choice) {
    std::string text;
    std::string names;
    for (const auto& name : choice.names)
        names += (names.empty() ? "" : ", ") + in_yaml_quotes(name);
    if (choice.names.size() == 1) text += "name: " + names + ", ";
    if (choice.names.size() > 1) text += "name: [" + names + "], ";
    if (choice.index) text += fmt::format("index: {}-{}, ", choice.index->first, choice.index->second);
    return text;
}

/// "": the process cannot be named.
std::string match_text(const WatchedProcess& process) {
    if (!process.unit.empty()) return "match: {unit: " + in_yaml_quotes(name_pattern(process.unit)) + "}\n";
    if (process.name.empty()) return {};
    return "match: {comm: " + in_yaml_quotes(name_pattern(process.name)) + "}\n";
}

bool has_all_living(const Wakes& wakes, const std::vector<Wakes::Thread>& group) {
    return std::ranges::all_of(wakes.threads, [&](const auto& entry) {
        return !entry.second.index || std::ranges::binary_search(group, entry.first);
    });
}

std::string rules_text(const Wakes& wakes, const SharerGraph& graph, const std::vector<GroupRule>& rules) {
    std::string text;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        const auto& choice = rules[i].choice;
        text += "  # " + members_text(wakes, graph.groups[i]) +
                (choice ? "\n" : ": no rule can mean these alone, as other threads have their names\n");
        if (choice)
            text +=
                fmt::format("  - {{{}spread: any, bind: {}}}\n", conditions_text(*choice), rules[i].level);
    }
    return text;
}

} // namespace

Suggestion suggestion_for(const WatchedProcess& process, const Wakes& wakes, const SharerGraph& graph,
                          const Topology& topology) {
    Suggestion suggestion;
    const auto levels = place_levels(topology);
    bool has_rule = false, is_void = true;
    std::size_t narrowest = levels.size();
    for (const auto& group : graph.groups) {
        const auto level = level_for(levels, group.size());
        suggestion.rules.push_back({level.name, choose_threads(wakes.threads, group)});
        is_void = is_void && level.is_all;
        const auto place = std::ranges::find(levels, level.name, &PlaceLevel::name) - levels.begin();
        narrowest = std::min(narrowest, static_cast<std::size_t>(place));
        has_rule = has_rule || suggestion.rules.back().choice.has_value();
    }
    if (is_void && narrowest < levels.size()) suggestion.void_level = levels[narrowest].name;
    suggestion.is_together = graph.groups.size() == 1 && has_all_living(wakes, graph.groups.front());
    const auto match = match_text(process);
    if (graph.groups.empty() || match.empty() || !(has_rule || suggestion.is_together)) return suggestion;
    suggestion.policy = fmt::format("# affinityctl sharers: {:.1f} s of {} (process {})\nversion: 1\n"
                                    "description: threads that wake each other share a cache\n{}",
                                    wakes.seconds, plain_name(process.name), process.pid, match);
    suggestion.policy += suggestion.is_together ? "together: " + suggestion.rules.front().level + "\n"
                                                : "threads:\n" + rules_text(wakes, graph, suggestion.rules);
    return suggestion;
}

} // namespace affinityctl
