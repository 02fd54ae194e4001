// SPDX-License-Identifier: Apache-2.0
// JSON and its schema.
#include "affinityctl/present/document.hpp"
#include "base/escape.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

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

constexpr Field parts_of_interval[] = {{"estimate", "", "number", "mean"},
                                       {"low", "", "number", "low end of the 95 % interval"},
                                       {"high", "", "number", "high end of it"}};
constexpr Field parts_of_change[] = {{"verdict", "", "text", "more, less, or no difference shown"},
                                     {"estimate", "", "number", "relative: 0.75 is 75 % more"},
                                     {"low", "", "number", "low end of the interval"},
                                     {"high", "", "number", "high end of it"}};

/// Decimals that give three digits of a value from 1 on, and two of a smaller one.
int decimals_of(double value) {
    const int power = value > 0 ? static_cast<int>(std::floor(std::log10(value))) : 2;
    return std::clamp(power >= 0 ? 2 - power : 1 - power, 0, 9);
}

std::string interval_words(const json& interval) {
    const double estimate = interval.at("estimate");
    const int decimals = decimals_of(estimate);
    return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", estimate, decimals, interval.at("low").get<double>(),
                       decimals, interval.at("high").get<double>(), decimals);
}

std::string change_words(const json& change) {
    const double estimate = change.at("estimate"), low = change.at("low"), high = change.at("high");
    if (low <= 0 && high >= 0) return change.at("verdict");
    const int digits = high - low < 0.05 ? 1 : 0;
    const auto percent = [digits](double part) { return affinityd::measure::signed_percent(part, digits); };
    return fmt::format("{} % ({} to {})", percent(estimate), percent(low), percent(high));
}

json schema_of_value(const Field& field, std::string_view type) {
    if (type.ends_with("[]"))
        return {{"type", "array"}, {"items", schema_of_value(field, type.substr(0, type.size() - 2))}};
    if (type.ends_with("{}"))
        return {{"type", "object"},
                {"additionalProperties", schema_of_value(field, type.substr(0, type.size() - 2))}};
    if (type == "interval" || type == "change")
        return schema_of(type == "change" ? change_fields : interval_fields, false);
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

const Fields interval_fields = parts_of_interval, change_fields = parts_of_change;

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

std::string figure_words(double value) { return fmt::format("{:.{}f}", value, decimals_of(value)); }

std::string cell(const json& value) {
    if (value.is_null()) return "-";
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    if (value.is_string()) {
        const auto& text = value.get_ref<const std::string&>();
        return text.empty() ? "-" : text;
    }
    if (value.is_object() && value.contains("low"))
        return value.contains("verdict") ? change_words(value) : interval_words(value);
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
