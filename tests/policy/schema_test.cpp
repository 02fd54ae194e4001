// SPDX-License-Identifier: Apache-2.0
// The schema, looked at by a reader of JSON Schema that knows just the words the schema uses.
#include "corpus.hpp"
#include "policy/fields.hpp"
#include "policy/tree.hpp"

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include <gtest/gtest.h>

namespace {

using namespace corpus;
using nlohmann::json;

json value_of(const Node& node) {
    if (node.kind == Node::Kind::null) return nullptr;
    if (node.kind == Node::Kind::list) {
        json list = json::array();
        for (const auto& item : node.items)
            list.push_back(value_of(item));
        return list;
    }
    if (node.kind == Node::Kind::map) {
        json map = json::object();
        for (std::size_t at = 0; at + 1 < node.items.size(); at += 2)
            map[node.items[at].text] = value_of(node.items[at + 1]);
        return map;
    }
    static const std::regex integer("-?(0|[1-9][0-9]{0,17})");
    if (!node.plain) return node.text;
    if (node.text == "true" || node.text == "false") return node.text == "true";
    if (std::regex_match(node.text, integer)) return std::stoll(node.text);
    return node.text;
}

bool is_type(const json& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "array") return value.is_array();
    EXPECT_EQ(type, "object");
    return value.is_object();
}

class Validator {
  public:
    explicit Validator(json schema) : root_(std::move(schema)) {}
    [[nodiscard]] bool accepts(const json& value) const { return accepts(root_, value); }

  private:
    [[nodiscard]] bool accepts(const json& schema, const json& value) const {
        if (schema.is_boolean()) return schema.get<bool>();
        static const std::set<std::string> words{"$schema",
                                                 "title",
                                                 "definitions",
                                                 "description",
                                                 "default",
                                                 "properties",
                                                 "additionalProperties",
                                                 "required",
                                                 "minProperties",
                                                 "maxProperties",
                                                 "type",
                                                 "const",
                                                 "enum",
                                                 "minimum",
                                                 "maximum",
                                                 "minLength",
                                                 "maxLength",
                                                 "pattern",
                                                 "items",
                                                 "minItems",
                                                 "anyOf",
                                                 "allOf",
                                                 "not",
                                                 "$ref"};
        for (const auto& [word, argument] : schema.items()) {
            if (!words.contains(word)) ADD_FAILURE() << "a word this test does not know: " << word;
            if (!word_holds(word, argument, schema, value)) return false;
        }
        return true;
    }

    [[nodiscard]] bool word_holds(const std::string& word, const json& argument, const json& schema,
                                  const json& value) const {
        if (word == "$ref")
            return accepts(root_.at(json::json_pointer(argument.get<std::string>().substr(1))), value);
        if (word == "const") return value == argument;
        if (word == "not") return !accepts(argument, value);
        if (word == "enum") return std::ranges::find(argument, value) != argument.end();
        if (word == "type") {
            const json types = argument.is_array() ? argument : json::array({argument});
            return std::ranges::any_of(
                types, [&](const json& type) { return is_type(value, type.get<std::string>()); });
        }
        const auto fits = [&](const json& one) { return accepts(one, value); };
        if (word == "anyOf") return std::ranges::any_of(argument, fits);
        if (word == "allOf") return std::ranges::all_of(argument, fits);
        if (value.is_object()) return object_holds(word, argument, schema, value);
        if (value.is_array() && word == "minItems") return value.size() >= argument.get<std::size_t>();
        if (value.is_array() && word == "items")
            return std::ranges::all_of(value, [&](const json& item) { return accepts(argument, item); });
        if (value.is_number() && word == "minimum") return value >= argument;
        if (value.is_number() && word == "maximum") return value <= argument;
        if (value.is_string() && word == "minLength")
            return value.get<std::string>().size() >= argument.get<std::size_t>();
        if (value.is_string() && word == "maxLength")
            return value.get<std::string>().size() <= argument.get<std::size_t>();
        if (value.is_string() && word == "pattern")
            return std::regex_search(value.get<std::string>(), std::regex(argument.get<std::string>()));
        return true;
    }

    [[nodiscard]] bool object_holds(const std::string& word, const json& argument, const json& schema,
                                    const json& value) const {
        if (word == "minProperties") return value.size() >= argument.get<std::size_t>();
        if (word == "maxProperties") return value.size() <= argument.get<std::size_t>();
        if (word == "required")
            return std::ranges::all_of(
                argument, [&](const json& key) { return value.contains(key.get<std::string>()); });
        for (const auto& [key, child] : value.items()) {
            const bool known = schema.contains("properties") && schema.at("properties").contains(key);
            if (word == "properties" && known && !accepts(argument.at(key), child)) return false;
            if (word == "additionalProperties" && !known && argument == false) return false;
        }
        return true;
    }

    json root_;
};

/// The schema that the build has written.
json written() {
    const char* path = std::getenv("AFFINITYD_POLICY_SCHEMA");
    return json::parse(slurp(path == nullptr ? "" : path));
}

const Validator& schema() {
    static const Validator validator(written());
    return validator;
}

TEST(Schema, AcceptsEveryGoodFile) {
    for (const auto& one : cases_with(&Sample::means)) {
        for (const auto& document : one.documents) {
            const auto text =
                document.text.starts_with("\xEF\xBB\xBF") ? document.text.substr(3) : document.text;
            const auto tree = parse_tree(text);
            ASSERT_TRUE(tree.has_value()) << document.path;
            EXPECT_TRUE(schema().accepts(value_of(*tree))) << document.path;
        }
    }
}

/// A schema can know keys, types, words and bounds, but no expressions, patterns and repetitions.
TEST(Schema, RefusesWhatTheReaderRefusesByKeyAndType) {
    std::size_t refused = 0;
    for (const auto& one : cases_with(&Sample::findings)) {
        if (one.documents.size() != 1) continue;
        const auto tree = parse_tree(one.documents[0].text);
        if (!tree) continue;
        const auto words = said(read_policies(one.documents).diagnostics);
        const bool knowable = words.find("unknown key") != std::string::npos ||
                              words.find("has no value") != std::string::npos ||
                              words.find("' must be ") != std::string::npos ||
                              words.find("is empty") != std::string::npos ||
                              words.find("'match' is missing") != std::string::npos ||
                              words.find("does not say its version") != std::string::npos;
        if (!knowable) continue;
        // A quoted number is a number where a text may be one; a number with a leading zero is one to
        // YAML 1.2.
        EXPECT_FALSE(schema().accepts(value_of(*tree))) << one.name << "\n" << words;
        ++refused;
    }
    EXPECT_GE(refused, 200U);
}

TEST(Schema, HasEveryKeyOfTheTable) {
    const auto whole = written();
    for (const auto& key : all_keys()) {
        const auto& place = key.level == Level::top     ? whole
                            : key.level == Level::match ? whole.at("definitions").at("conditions")
                                                        : whole.at("definitions").at("thread");
        ASSERT_TRUE(place.at("properties").contains(std::string(key.name))) << key.name;
        EXPECT_EQ(place.at("properties").at(std::string(key.name)).at("description"),
                  std::string(key.meaning));
    }
}

} // namespace
