// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/suggestion.hpp"

#include "base/text.hpp"
#include "policy/pattern.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::policy::Pattern;
using Threads = std::map<Wakes::Thread, WokenThread>;

constexpr std::size_t most_names = 32; ///< in one rule; a longer list is not read
constexpr std::size_t few_names = 2;   ///< so many are listed, also where one pattern would do

class Matching {
  public:
    explicit Matching(const ThreadChoice& choice) : choice_(&choice) {
        for (const auto& text : choice.names)
            if (auto pattern = Pattern::parse(text)) patterns_.push_back(pattern->of_name());
    }
    /// No place satisfies no `index`.
    [[nodiscard]] bool holds(const WokenThread& thread) const {
        const auto& range = choice_->index;
        if (range && (!thread.index || *thread.index < range->first || *thread.index > range->second))
            return false;
        return choice_->names.empty() || std::ranges::any_of(patterns_, [&](const Pattern& pattern) {
                   return pattern.matches(thread.name);
               });
    }

  private:
    const ThreadChoice* choice_;
    std::vector<Pattern> patterns_;
};

/// With an index, those of the members that have ended do not count.
bool means_exactly(const ThreadChoice& choice, const Threads& threads,
                   const std::set<Wakes::Thread>& members) {
    const Matching matching(choice);
    return std::ranges::all_of(threads, [&](const auto& entry) {
        const auto& [id, thread] = entry;
        const bool is_out_of_account = choice.index && !thread.index;
        return is_out_of_account || matching.holds(thread) == members.contains(id);
    });
}

/// The beginning of all names, without digits at its end: "io-thread-" of io-thread-1 and io-thread-12.
std::string common_beginning(const std::set<std::string>& names) {
    const std::string& first = *names.begin();
    const std::string& last = *names.rbegin();
    const auto end = std::ranges::mismatch(first, last).in1;
    std::string beginning(first.begin(), end);
    while (!beginning.empty() && affinityd::is_digit(beginning.back()))
        beginning.pop_back();
    return beginning;
}

/// Patterns for the names, the best first.
std::vector<std::vector<std::string>> ways_to_name(const std::set<std::string>& names) {
    std::vector<std::vector<std::string>> ways;
    if (names.empty() || names.contains("")) return ways;
    std::vector<std::string> list;
    for (const auto& name : names)
        list.push_back(name_pattern(name));
    if (names.size() <= few_names) ways.push_back(list);
    if (const auto beginning = common_beginning(names); names.size() > 1 && !beginning.empty())
        ways.push_back({name_pattern(beginning) + "*"});
    if (names.size() > few_names && names.size() <= most_names) ways.push_back(list);
    return ways;
}

std::optional<std::pair<unsigned, unsigned>> range_of(const Threads& threads,
                                                      const std::set<Wakes::Thread>& members) {
    std::optional<std::pair<unsigned, unsigned>> range;
    unsigned living = 0;
    for (const auto& id : members)
        if (const auto& index = threads.at(id).index) {
            if (!range) range = {*index, *index};
            range = {std::min(range->first, *index), std::max(range->second, *index)};
            ++living;
        }
    return living >= 2 ? range : std::nullopt;
}

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

std::optional<ThreadChoice> choose_threads(const Threads& threads,
                                           const std::vector<Wakes::Thread>& members) {
    const std::set<Wakes::Thread> wanted(members.begin(), members.end());
    std::set<std::string> names;
    for (const auto& id : wanted)
        names.insert(threads.at(id).name);
    const auto ways = ways_to_name(names);
    for (const auto& way : ways)
        if (ThreadChoice choice{way, {}}; means_exactly(choice, threads, wanted)) return choice;
    const auto range = range_of(threads, wanted);
    if (!range) return std::nullopt;
    if (ThreadChoice choice{{}, range}; means_exactly(choice, threads, wanted)) return choice;
    for (const auto& way : ways)
        if (ThreadChoice choice{way, range}; means_exactly(choice, threads, wanted)) return choice;
    return std::nullopt;
}

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
