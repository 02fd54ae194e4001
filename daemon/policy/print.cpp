// SPDX-License-Identifier: Apache-2.0
#include "policy/print.hpp"

#include "base/text.hpp"
#include "policy/keys.hpp"
#include "policy/words.hpp"

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

namespace affinityd::policy {

namespace {

/// YAML's double quotes; control characters cannot come from a file, but a policy may be made by code.
std::string quote(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        if (static_cast<unsigned char>(c) < 0x20) {
            quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
            quoted += c;
        }
    }
    return quoted + "\"";
}

template <class List, class Text>
std::string list(const List& items, const Text& text) {
    std::string joined;
    for (const auto& item : items)
        joined += (joined.empty() ? "" : ", ") + text(item);
    return "[" + joined + "]";
}

std::string patterns(const std::vector<Pattern>& items) {
    return list(items, [](const Pattern& pattern) { return quote(pattern.text()); });
}

/// The word of a choice, from the key table: the one list of them there is.
template <class Value>
std::string_view word(std::string_view key, Value value) {
    if constexpr (std::is_same_v<Value, bool>) return value ? "true" : "false";
    return find_key(Level::top, key)->values[static_cast<std::size_t>(value)];
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
    const auto one = [&](const Selector& map) { return selector_text(map, user_units); };
    switch (child.op) {
    case Selector::Op::test:
        return fmt::format("{}: {}", field_name(child.condition.field), condition_value(child.condition));
    case Selector::Op::none:
        return "not: " + list(child.children, one);
    case Selector::Op::any:
        return "any: " + list(child.children, one);
    case Selector::Op::all:
        break;
    }
    return "all: " + list(child.children, one);
}

/// What `user-units` is for the conditions of this map; `outer`: in the map around it.
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
    if (placement.cpus) text += fmt::format("{}cpus: {}\n", before, quote(to_string(*placement.cpus)));
    if (placement.near) text += fmt::format("{}near: {}\n", before, quote(to_string(*placement.near)));
    if (placement.near_measured) text += fmt::format("{}near: measured\n", before);
    text += fmt::format("{}spread: {}\n", before, word("spread", placement.spread));
    text += fmt::format("{}bind: {}\n", before, word("bind", placement.bind));
    text += fmt::format("{}smt: {}\n", before, word("smt", placement.smt));
    return text;
}

std::string rule_text(const ThreadRule& rule, const Placement& of_policy) {
    std::string text = fmt::format("  - leave: {}\n", rule.leave);
    if (!rule.names.empty()) text += fmt::format("    name: {}\n", patterns(rule.names));
    if (!rule.slot.empty()) text += fmt::format("    slot: {}\n", quote(rule.slot));
    if (rule.index) text += fmt::format("    index: {}-{}\n", rule.index->first, rule.index->second);
    if (rule.leave) return text;
    Placement own = rule.placement;
    // `near: measured` means another company in a rule than above it.
    own.near_measured = own.near_measured && own.near_at != of_policy.near_at;
    return text + placement(own, "    ");
}

} // namespace

std::string to_yaml(const Selector& selector) { return selector_text(selector, false); }

std::string to_yaml(const Policy& policy) {
    std::string text = "version: 1\n";
    text += fmt::format("description: {}\n", quote(policy.description));
    text += fmt::format("priority: {}\n", policy.priority);
    text += fmt::format("default: {}\n", policy.everything_else);
    if (!policy.match.children.empty()) text += "match: " + to_yaml(policy.match) + "\n";
    text += fmt::format("affinity: {}\n", word("affinity", policy.model));
    text += fmt::format("nics: {}\n", policy.nics_auto ? "auto" : patterns(policy.nics));
    if (!policy.irqs.empty()) text += fmt::format("irqs: {}\n", patterns(policy.irqs));
    text += placement(policy.placement, "");
    text += fmt::format("together: {}\n", word("together", policy.together));
    if (!policy.threads.empty()) text += "threads:\n";
    for (const auto& rule : policy.threads)
        text += rule_text(rule, policy.placement);
    if (!policy.allow_join.empty()) text += fmt::format("allow_join: {}\n", list(policy.allow_join, quote));
    each_word(policy, [&](std::string_view key, const auto& value) {
        text += fmt::format("{}: {}\n", key, word(key, value));
    });
    text += fmt::format("settle: {}\n", to_text(policy.settle));
    return text;
}

} // namespace affinityd::policy
