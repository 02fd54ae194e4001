// SPDX-License-Identifier: Apache-2.0
// JSON and its schema.
#include "affinityctl/present/document.hpp"
#include "base/escape.hpp"

#include <stdexcept>
#include <string_view>

namespace affinityctl {

using nlohmann::json;

json record(Fields fields, std::initializer_list<json> values) {
    json object = json::object();
    const auto* value = values.begin();
    for (const auto& field : fields) {
        if (*field.key == '\0') continue;
        if (value == values.end()) throw std::logic_error(std::string("no value for ") + field.key);
        if (!value->is_discarded()) object[field.key] = *value;
        ++value;
    }
    if (value != values.end()) throw std::logic_error("more values than fields");
    return object;
}

namespace {

json schema_of_value(const Field& field, std::string_view type) {
    if (type.ends_with("[]"))
        return {{"type", "array"}, {"items", schema_of_value(field, type.substr(0, type.size() - 2))}};
    if (type.ends_with("{}"))
        return {{"type", "object"},
                {"additionalProperties", schema_of_value(field, type.substr(0, type.size() - 2))}};
    if (type == "object") return schema_of(field.parts, false);
    if (type == "any") return json::object();
    return {{"type", type == "count"                      ? "integer"
                     : type == "number" || type == "flag" ? (type == "flag" ? "boolean" : "number")
                                                          : "string"}};
}

/// nullptr where there is none.
const json* find(const json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
}

} // namespace

json schema_of(Fields fields, bool is_list) {
    json properties = json::object(), required = json::array();
    for (const auto& field : fields) {
        if (*field.key == '\0') continue;
        std::string_view type = field.type;
        if (type.ends_with('*'))
            type.remove_suffix(1);
        else
            required.push_back(field.key);
        const bool may_be_null = type.ends_with('?');
        if (may_be_null) type.remove_suffix(1);
        auto schema = schema_of_value(field, type);
        if (may_be_null && schema.contains("type")) schema["type"] = {schema["type"], "null"};
        schema["description"] = field.help;
        properties[field.key] = std::move(schema);
    }
    const json object{{"type", "object"}, {"properties", properties}, {"required", required}};
    return is_list ? json{{"type", "array"}, {"items", object}} : object;
}

std::string dump(const json& value, int indent) {
    return affinityd::escaped_json(value.dump(indent, ' ', false, json::error_handler_t::replace));
}

std::string cell(const json& value) {
    if (value.is_null()) return "-";
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    if (value.is_string()) {
        const auto& text = value.get_ref<const std::string&>();
        return text.empty() ? "-" : text;
    }
    auto text = value.dump();
    if (value.is_number_float() && text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
}

std::string text_of(const json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() ? "-" : cell(*found);
}

std::string joined(const json& list, std::string_view between) {
    std::string text;
    for (const auto& item : list)
        text += (text.empty() ? "" : std::string(between)) + cell(item);
    return text;
}

json or_null(const std::string& text) { return text.empty() ? json() : json(text); }

json or_null(const std::optional<affinityd::CpuSet>& cpus) { return cpus ? json(cpus->to_list()) : json(); }

std::string text(const json& object, const char* key) {
    const auto* found = find(object, key);
    return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t count(const json& object, const char* key) {
    const auto* found = find(object, key);
    return found != nullptr && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

const json& list(const json& object, const char* key) {
    static const json none = json::array();
    const auto* found = find(object, key);
    return found != nullptr && found->is_array() ? *found : none;
}

affinityd::CpuSet cpus(const json& object, const char* key) {
    return affinityd::CpuSet::parse_list(text(object, key)).value_or(affinityd::CpuSet{});
}

json member(const json& object, const char* key) {
    const auto* found = find(object, key);
    return found == nullptr ? json() : *found;
}

} // namespace affinityctl
