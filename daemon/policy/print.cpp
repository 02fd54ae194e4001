// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "policy/fields.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/format.h>

namespace affinityd::policy {

namespace {

template <class List, class Text>
std::string list(const List& items, const Text& text) {
    std::string joined;
    for (const auto& item : items)
        joined += (joined.empty() ? "" : ", ") + text(item);
    return "[" + joined + "]";
}

std::string patterns(const std::vector<Pattern>& items) {
    return list(items, [](const Pattern& pattern) { return yaml_text(pattern.text()); });
}

/// The line of a key whose value is a word of the key table, or true or false.
template <class Value>
std::string word(std::string_view key, Value value, std::string_view before = "") {
    if constexpr (std::is_same_v<Value, bool>) {
        return fmt::format("{}{}: {}\n", before, key, value);
    } else {
        const auto& values = std::ranges::find(keys_of(Level::top), key, &Key::name)->values;
        return fmt::format("{}{}: {}\n", before, key, values[static_cast<std::size_t>(value)]);
    }
}

std::string condition_value(const Condition& condition) {
    if (condition.field == Condition::Field::kthread) return condition.flag ? "true" : "false";
    if (condition.field != Condition::Field::listen) return patterns(condition.patterns);
    return list(condition.ports, [](const auto& range) {
        return range.first == range.second ? std::to_string(range.first)
                                           : fmt::format("{}-{}", range.first, range.second);
    });
}

std::string selector_text(const Selector& selector, bool user_units);

std::string child_text(const Selector& child, bool user_units) {
    if (child.op == Selector::Op::test)
        return fmt::format("{}: {}", field_name(child.condition.field), condition_value(child.condition));
    constexpr std::array<std::string_view, 3> names{"all", "any", "not"};
    return fmt::format(
        "{}: {}", names[static_cast<std::size_t>(child.op)],
        list(child.children, [&](const Selector& map) { return selector_text(map, user_units); }));
}

/// The value of `user-units` for the conditions of this map; `outer`: in the map around it.
bool says_user_units(const Selector& map, bool outer) {
    for (const auto& child : map.children) {
        const auto field = child.condition.field;
        if (child.op == Selector::Op::test &&
            (field == Condition::Field::unit || field == Condition::Field::container))
            return child.condition.user_units;
    }
    return outer;
}

std::string selector_text(const Selector& selector, bool user_units) {
    if (selector.op != Selector::Op::all) return "{" + child_text(selector, user_units) + "}";
    const bool own = says_user_units(selector, user_units);
    const auto children =
        list(selector.children, [&](const Selector& child) { return child_text(child, own); });
    const std::string stated = own == user_units ? "" : fmt::format("user-units: {}, ", own);
    return "{" + stated + children.substr(1, children.size() - 2) + "}";
}

std::string placement(const Placement& placement, std::string_view before) {
    std::string text;
    if (placement.cpus) text += fmt::format("{}cpus: {}\n", before, yaml_text(to_string(*placement.cpus)));
    if (placement.near) text += fmt::format("{}near: {}\n", before, yaml_text(to_string(*placement.near)));
    if (placement.near_measured) text += fmt::format("{}near: measured\n", before);
    if (placement.near_room) text += fmt::format("{}near: room\n", before);
    return text + word("spread", placement.spread, before) + word("bind", placement.bind, before) +
           word("smt", placement.smt, before);
}

std::string rule_text(const ThreadRule& rule, const Placement& of_policy) {
    std::string text = fmt::format("  - leave: {}\n", rule.leave);
    if (!rule.names.empty()) text += fmt::format("    name: {}\n", patterns(rule.names));
    if (!rule.slot.empty()) text += fmt::format("    slot: {}\n", yaml_text(rule.slot));
    if (rule.index) text += fmt::format("    index: {}-{}\n", rule.index->first, rule.index->second);
    if (rule.leave) return text;
    if (!rule.nics.empty()) text += fmt::format("    nics: {}\n", patterns(rule.nics));
    Placement own = rule.placement;
    // `near: measured` means another company in a rule than above it.
    own.near_measured = own.near_measured && own.near_at != of_policy.near_at;
    own.near_room = false;
    return text + placement(own, "    ");
}

} // namespace

std::string yaml_text(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += static_cast<unsigned char>(c) < 0x20 ? fmt::format("\\x{:02x}", c) : std::string(1, c);
    }
    return quoted + "\"";
}

std::string to_yaml(const Selector& selector) { return selector_text(selector, false); }

std::string to_yaml(const Policy& policy) {
    auto text = fmt::format("version: 1\ndescription: {}\npriority: {}\n", yaml_text(policy.description),
                            policy.priority);
    text += word("default", policy.everything_else);
    if (!policy.match.children.empty()) text += "match: " + to_yaml(policy.match) + "\n";
    text += policy.model_auto ? "affinity: auto\n" : word("affinity", policy.model);
    text += fmt::format("nics: {}\n", policy.nics_auto ? "auto" : patterns(policy.nics));
    if (!policy.irqs.empty()) text += fmt::format("irqs: {}\n", patterns(policy.irqs));
    if (policy.rps) text += fmt::format("rps: {}\n", yaml_text(to_string(*policy.rps)));
    text += placement(policy.placement, "") + word("together", policy.together);
    if (!policy.threads.empty()) text += "threads:\n";
    for (const auto& rule : policy.threads)
        text += rule_text(rule, policy.placement);
    if (!policy.allow_join.empty())
        text += fmt::format("allow_join: {}\n", list(policy.allow_join, yaml_text));
    each_word(policy, [&](std::string_view key, const auto& value) { text += word(key, value); });
    return text + fmt::format("settle: {}\n", to_text(policy.settle));
}

} // namespace affinityd::policy
