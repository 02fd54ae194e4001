// SPDX-License-Identifier: Apache-2.0
#include "policy/print.hpp"

#include "base/text.hpp"
#include "policy/fields.hpp"
#include "policy/policy.hpp"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
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
    return std::ranges::find(keys_of(Level::top), key, &Key::name)->values[static_cast<std::size_t>(value)];
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

namespace {

using Json = nlohmann::ordered_json;

Json one_or_list(const Json& one) {
    return {{"anyOf", Json::array({one, Json{{"type", "array"}, {"items", one}, {"minItems", 1}}})}};
}

/// A name may look like a number or a truth value to YAML (user: 1000).
Json name() { return {{"type", Json::array({"string", "number", "boolean"})}, {"minLength", 1}}; }

Json number_or_text(int low, int high, std::string_view pattern) {
    return {{"anyOf", Json::array({Json{{"type", "integer"}, {"minimum", low}, {"maximum", high}},
                                   Json{{"type", "string"}, {"pattern", pattern}}})}};
}

Json slot() { return {{"type", "string"}, {"pattern", "^[A-Za-z0-9._-]{1,31}$"}}; }

Json reference(std::string_view to) { return {{"$ref", "#/definitions/" + std::string(to)}}; }

Json condition_list(const Key& key) {
    Json one = reference("conditions");
    if (key.name != "any") return one_or_list(one);
    // One map of several keys would have to hold whole, which `any` does not mean.
    Json single{{"allOf", Json::array({one, Json{{"maxProperties", 1}}})}};
    return {{"anyOf", Json::array({single, Json{{"type", "array"}, {"items", one}, {"minItems", 1}}})}};
}

/// A word as YAML reads it.
Json word(std::string_view text) {
    if (text == "true" || text == "false") return text == "true";
    return text;
}

Json words(std::span<const std::string_view> texts) {
    auto list = Json::array();
    for (const auto text : texts)
        list.push_back(word(text));
    return list;
}

Json type_of(const Key& key) {
    switch (key.type) {
    case Type::version:
        return {{"const", 1}};
    case Type::integer:
        return {{"type", "integer"}, {"minimum", -100'000}, {"maximum", 100'000}};
    case Type::boolean:
        return {{"type", "boolean"}};
    case Type::text:
        return {{"type", Json::array({"string", "number", "boolean"})}, {"maxLength", 4096}};
    case Type::choice:
        return {{"enum", words(key.values)}};
    case Type::cpus:
    case Type::near: // "measured" is a text like the others
        return number_or_text(0, 1'048'575, "^.*[^ ].*$");
    case Type::patterns:
    case Type::nics:
    case Type::policies:
        return one_or_list(name());
    case Type::ports:
        return one_or_list(number_or_text(1, 65'535, "^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?$"));
    case Type::duration:
        return number_or_text(
            0, 60, "^((0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|60000)ms|(0|[1-9]|[1-5][0-9]|60)s?|[01]m)$");
    case Type::index:
        return number_or_text(0, 2'147'483'647, "^(0|[1-9][0-9]*)(-(0|[1-9][0-9]*))?$");
    case Type::slot:
        return slot();
    case Type::slots:
        return one_or_list(slot());
    case Type::conditions:
        return reference("conditions");
    case Type::condition_lists:
        return condition_list(key);
    case Type::rules:
        return one_or_list(reference("thread"));
    case Type::described:
        break;
    }
    return Json::object(); // of another language, for which there is no schema
}

Json object(Level level) {
    Json properties = Json::object();
    for (const auto& key : keys_of(level)) {
        Json schema = type_of(key);
        // Draft 7 ignores what is beside a reference; people read the description all the same.
        schema["description"] = key.meaning;
        if (key.type == Type::boolean) schema["default"] = key.standard == "true";
        if (key.type == Type::choice && level == Level::top) schema["default"] = word(key.standard);
        properties[std::string(key.name)] = std::move(schema);
    }
    return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

} // namespace

std::string json_schema() {
    Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
                {"title", "affinityd policy, version 1"}};
    schema.update(object(Level::top));
    schema["required"] = Json::array({"version"});
    const auto holds = [](std::string_view key, const Json& value) {
        return Json{{"required", Json::array({key})},
                    {"properties", {{std::string(key), {{"const", value}}}}}};
    };
    Json named_nics{{"required", Json::array({"nics"})},
                    {"properties", {{"nics", {{"not", {{"const", "auto"}}}}}}}};
    const Json named_irqs{{"required", Json::array({"irqs"})}};
    schema["anyOf"] = Json::array({Json{{"required", Json::array({"match"})}}, holds("default", true),
                                   Json{{"allOf", Json::array({holds("affinity", "irq"), named_nics})}},
                                   Json{{"allOf", Json::array({holds("affinity", "irq"), named_irqs})}}});
    Json conditions = object(Level::match);
    Json thread = object(Level::thread);
    conditions["minProperties"] = 1;
    thread["minProperties"] = 1;
    schema["definitions"] = {{"conditions", conditions}, {"thread", thread}};
    return schema.dump(2) + "\n";
}

} // namespace affinityd::policy
