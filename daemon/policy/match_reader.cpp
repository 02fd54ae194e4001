// SPDX-License-Identifier: Apache-2.0
#include "policy/document.hpp"
#include "policy/suggest.hpp"
#include "policy/words.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace affinityd::policy {

namespace {

using Field = Condition::Field;
constexpr std::array<std::string_view, 11> field_names{
    "comm", "exe", "cmdline", "unit", "cgroup", "user", "group", "container", "parent", "listen", "kthread"};

Selector::Op op_of(std::string_view name) {
    if (name == "not") return Selector::Op::none;
    return name == "any" ? Selector::Op::any : Selector::Op::all;
}

/// Patterns that can never match, said while the person still looks at the file.
void check_reach(const Fields::Entry& entry, const Pattern& pattern, const Node& at, Report& report) {
    const std::string_view text = pattern.text();
    const auto name = entry.key->name;
    if (name != "cmdline" && pattern.is_literal() && text.find(',') != std::string_view::npos)
        report.warn(at, in_quotes(text) + " is one name with a comma in it",
                    "write several as a list: [a, b]");
    if (name == "comm") check_name(pattern, "process", at, report);
    if ((name == "exe" || name == "cgroup") && pattern.is_literal() && !text.starts_with('/'))
        report.warn(at,
                    "'" + std::string(name) + "' is a path from '/': " + in_quotes(text) + " matches nothing",
                    "write " + in_quotes("*/" + std::string(text)));
    if (name == "unit" && pattern.is_literal() && text.find('.') == std::string_view::npos)
        report.warn(at, "a unit's name has an ending: " + in_quotes(text) + " matches nothing",
                    "write " + in_quotes(std::string(text) + ".service"));
}

std::vector<Pattern> read_field_patterns(const Fields::Entry& entry, Report& report) {
    auto patterns = read_patterns(entry, report);
    const Node& value = *entry.value;
    std::size_t at = 0;
    for (auto& pattern : patterns) {
        if (entry.key->name == "comm") pattern = pattern.of_name();
        const Node* node = &value;
        while (value.kind == Node::Kind::list && at < value.items.size() &&
               (node = &value.items[at++])->text != pattern.text()) {
        }
        check_reach(entry, pattern, *node, report);
    }
    return patterns;
}

Selector read_map(const Node& map, bool user_units, Report& report);

Selector read_test(const Fields::Entry& entry, Field field, bool user_units, Report& report) {
    Selector selector{.op = Selector::Op::test, .children = {}, .condition = {}};
    auto& condition = selector.condition;
    condition.field = field;
    condition.user_units = user_units && (field == Field::unit || field == Field::container);
    condition.at = report.at(*entry.name);
    if (field == Field::kthread)
        condition.flag = read_boolean(entry, report).value_or(false);
    else if (field == Field::listen)
        condition.ports = read_ports(entry, report);
    else
        condition.patterns = read_field_patterns(entry, report);
    return selector;
}

/// `not`, `any`, `all`: a list of maps; one map counts as a list of one. "any" with one map of several keys
/// would hold only if all of them do, which is never what its author meant.
Selector read_combination(const Fields::Entry& entry, bool user_units, Report& report) {
    Selector selector{.op = op_of(entry.key->name), .children = {}, .condition = {}};
    const Node& value = *entry.value;
    const std::string name = "'" + std::string(entry.key->name) + "'";
    if (value.kind == Node::Kind::scalar) {
        report.error(value, name + " must be " + type_name(*entry.key) + ", not " + in_quotes(value.text),
                     "for instance " + std::string(entry.key->name) + ": " + std::string(entry.key->example));
        return selector;
    }
    if (value.kind == Node::Kind::map) {
        if (selector.op == Selector::Op::any && value.items.size() > 2)
            report.error(value, "'any' with one map: all of its keys would have to hold",
                         "write a list, with '-' before each condition");
        selector.children.push_back(read_map(value, user_units, report));
        return selector;
    }
    if (value.items.empty()) report.error(value, "the list of " + name + " is empty");
    for (const auto& element : value.items) {
        if (element.kind == Node::Kind::map)
            selector.children.push_back(read_map(element, user_units, report));
        else
            report.error(element.kind == Node::Kind::null ? *entry.name : element,
                         "an element of " + name + " must be a map of conditions",
                         "for instance {comm: nginx}");
    }
    return selector;
}

constexpr std::string_view user_units_key = "user-units";

bool has_users_names(const Selector& selector) {
    return selector.condition.user_units || std::ranges::any_of(selector.children, has_users_names);
}

/// `user_units`: what a map around this one says.
Selector read_map(const Node& map, bool user_units, Report& report) {
    Selector all{.op = Selector::Op::all, .children = {}, .condition = {}};
    const Fields fields(map, Level::match, report);
    const auto* stated = fields.find(user_units_key);
    if (stated != nullptr) user_units = read_boolean(*stated, report).value_or(user_units);
    for (const auto& entry : fields.entries()) {
        if (entry.key->name == user_units_key) continue;
        const auto at =
            static_cast<std::size_t>(std::ranges::find(field_names, entry.key->name) - field_names.begin());
        all.children.push_back(at < field_names.size()
                                   ? read_test(entry, Field{static_cast<int>(at)}, user_units, report)
                                   : read_combination(entry, user_units, report));
    }
    const bool is_empty = map.items.empty() || (stated != nullptr && map.items.size() == 2);
    if (is_empty)
        report.error(map, "a map of conditions without any would hold for everything",
                     "add one, for instance comm: nginx");
    else if (stated != nullptr && user_units && !has_users_names(all))
        report.warn(*stated->name, "'user-units' says nothing without 'unit' or 'container'");
    return all;
}

} // namespace

std::string_view field_name(Field field) { return field_names[static_cast<std::size_t>(field)]; }

Selector read_match(const Node& map, Report& report) { return read_map(map, false, report); }

} // namespace affinityd::policy
