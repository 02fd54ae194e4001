// SPDX-License-Identifier: Apache-2.0
#include "policy/document.hpp"
#include "policy/order.hpp"
#include "policy/slot_names.hpp"
#include "policy/suggest.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace affinityd::policy {

namespace {

constexpr std::array<std::string_view, 5> placing{"cpus", "near", "spread", "bind", "smt"};

/// True if whatever the later pattern matches, the earlier one does: the same text, or a plain text that it
/// matches.
bool covers(const Pattern& earlier, const Pattern& later) {
    return earlier == later || matches_everything(earlier) ||
           (later.is_literal() && earlier.matches(later.text()));
}

bool covers(const ThreadRule& earlier, const ThreadRule& later) {
    if (earlier.is_for_joined_only() || later.is_for_joined_only()) return false;
    const bool indexes = !earlier.index || (later.index && earlier.index->first <= later.index->first &&
                                            later.index->second <= earlier.index->second);
    const auto covered = [&](const Pattern& name) {
        return std::ranges::any_of(earlier.names, [&](const Pattern& other) { return covers(other, name); });
    };
    if (!indexes || earlier.names.empty()) return indexes;
    if (later.names.empty()) return std::ranges::any_of(earlier.names, matches_everything);
    return std::ranges::all_of(later.names, covered);
}

ThreadRule read_rule(const Node& map, const Placement& standard, Report& report) {
    ThreadRule rule;
    rule.at = report.at(map);
    rule.placement = standard;
    const Fields fields(map, Level::thread, report);
    if (map.items.empty())
        report.error(map, "a thread rule without keys", "name the threads: {name: \"io*\", cpus: \"0\"}");
    if (const auto* entry = fields.find("name")) {
        rule.names = read_patterns(*entry, report);
        for (auto& name : rule.names) {
            name = name.of_name();
            check_name(name, "thread", *entry->value, report);
        }
    }
    if (const auto* entry = fields.find("index")) rule.index = read_index(*entry, report);
    if (const auto* entry = fields.find("slot")) rule.slot = read_slot(*entry, report);
    set_word(fields, "leave", rule.leave, report);
    read_placement(fields, rule.placement, report);
    if (rule.placement.near_measured) place_singly(rule.placement);
    if (!rule.leave) return rule;
    for (const auto& name : placing)
        if (const auto* entry = fields.find(name))
            report.error(*entry->name,
                         "'" + std::string(name) + "' for threads that 'leave: true' says not to touch",
                         "remove one of the two");
    return rule;
}

} // namespace

std::vector<ThreadRule> read_threads(const Fields::Entry& entry, const Placement& standard, Report& report) {
    std::vector<ThreadRule> rules;
    const Node& value = *entry.value;
    std::vector<const Node*> maps;
    if (value.kind == Node::Kind::map) maps.push_back(&value);
    if (value.kind == Node::Kind::scalar)
        report.error(value, "'threads' must be a list of thread rules, not " + in_quotes(value.text),
                     "for instance [{name: \"io*\", cpus: \"0\"}]");
    if (value.kind == Node::Kind::list && value.items.empty())
        report.error(value, "the list of 'threads' is empty");
    for (std::size_t at = 0; value.kind == Node::Kind::list && at < value.items.size(); ++at) {
        const Node& item = value.items[at];
        if (item.kind == Node::Kind::map)
            maps.push_back(&item);
        else
            report.error(item.kind == Node::Kind::null ? *entry.name : item,
                         "element " + std::to_string(at + 1) + " of 'threads' must be a map",
                         "for instance {name: \"io*\", cpus: \"0\"}");
    }
    for (const Node* map : maps) {
        auto rule = read_rule(*map, standard, report);
        const auto earlier =
            rules.size() > 1000
                ? rules.end()
                : std::ranges::find_if(rules, [&](const ThreadRule& other) { return covers(other, rule); });
        if (earlier != rules.end())
            report.warn(*map,
                        "this rule is never reached: the one in line " + std::to_string(earlier->at.line) +
                            " takes all of its threads",
                        "put the narrower rule first");
        rules.push_back(std::move(rule));
    }
    return rules;
}

} // namespace affinityd::policy
