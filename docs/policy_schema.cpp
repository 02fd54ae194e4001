// SPDX-License-Identifier: Apache-2.0
// Run by the build: writes the language as a JSON Schema (draft 7, which editors know), made from the key
// table. The schema says what keys there are, what types and words they take and where they stand; CPU-set
// expressions and regular expressions are texts to it.
#include "policy/fields.hpp"

#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace {

using affinityd::policy::Key;
using affinityd::policy::keys_of;
using affinityd::policy::Level;
using affinityd::policy::Type;
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
    // A map of several keys would have to hold whole, which `any` does not mean.
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
        return {{"type", "integer"}, {"minimum", key.low}, {"maximum", key.high}};
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
    case Type::seconds:
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

Json whole() {
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
    return schema;
}

} // namespace

int main() {
    std::cout << whole().dump(2) << '\n';
    return std::cout.good() ? 0 : 1;
}
