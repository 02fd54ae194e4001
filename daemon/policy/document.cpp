// SPDX-License-Identifier: Apache-2.0
#include "policy/diagnostic.hpp"
#include "policy/fields.hpp"
#include "policy/set_check.hpp"

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
    const Fields fields(map, keys_of(Level::match), report);
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

namespace {

constexpr std::string_view good_names = "1 to 31 letters, digits, and . _ -";

void no_name(const Node& at, Report& report) {
    report.error(at, in_quotes(at.text) + " is no name for a slot", std::string(good_names));
}

} // namespace

bool is_slot_name(std::string_view text) {
    const auto is_good = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
    };
    return !text.empty() && text.size() <= longest_slot && std::ranges::all_of(text, is_good);
}

namespace {

/// The `slot` of a thread rule; "": it was reported.
std::string read_slot(const Fields::Entry& entry, Report& report) {
    const Node& value = *entry.value;
    if (value.kind != Node::Kind::scalar) {
        report_wrong_type(entry, report);
        return {};
    }
    if (!is_slot_name(value.text)) {
        no_name(value, report);
        return {};
    }
    if (value.text == arrivals_slot) {
        report.error(value, "'arrivals' is the slot where packets arrive: it can be no rule's",
                     "choose another name");
        return {};
    }
    return value.text;
}

/// The slots of `allow_join`; those that are wrong are reported and left out.
std::vector<std::string> read_slots(const Fields::Entry& entry, Report& report) {
    std::vector<std::string> slots;
    for (const Node* element : read_list(entry, report))
        if (is_slot_name(element->text))
            slots.push_back(element->text);
        else
            no_name(*element, report);
    return slots;
}

/// Each slot is one rule's, and those that may be joined exist. `allowed`: where they stand; null: nowhere.
void check_slots(const Fields::Entry* allowed, const Policy& policy, Report& report) {
    std::vector<std::string_view> known;
    const auto is_known = [&](std::string_view name) {
        return std::ranges::find(known, name) != known.end();
    };
    for (const auto& rule : policy.threads) {
        if (rule.slot.empty()) continue;
        if (is_known(rule.slot))
            report.add(Severity::error, rule.at.line, rule.at.column, 1,
                       "two thread rules have the slot " + in_quotes(rule.slot),
                       "one rule says what a slot is");
        else if (std::ranges::find(policy.allow_join, rule.slot) == policy.allow_join.end())
            report.add(Severity::warning, rule.at.line, rule.at.column, 1,
                       "nobody may join the slot " + in_quotes(rule.slot), "add it to 'allow_join'");
        known.push_back(rule.slot);
    }
    if (allowed == nullptr) return;
    known.push_back(arrivals_slot);
    const Node& value = *allowed->value;
    const auto check = [&](const Node& name) {
        if (name.kind != Node::Kind::scalar || !is_slot_name(name.text) || is_known(name.text)) return;
        const auto meant = did_you_mean(name.text, known);
        report.error(name, "no thread rule has the slot " + in_quotes(name.text),
                     meant.empty() ? "write 'slot: " + name.text + "' in a rule of 'threads'" : meant);
    };
    check(value);
    for (const auto& element : value.items)
        if (value.kind == Node::Kind::list) check(element);
}

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
    const Fields fields(map, keys_of(Level::thread), report);
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

void read_version(const Fields& fields, const Node& root, Report& report) {
    const auto* entry = fields.find("version");
    if (entry == nullptr) {
        for (std::size_t at = 0; at < root.items.size(); at += 2)
            if (root.items[at].text == "version") return; // there, but without a value: reported
        report.add(Severity::warning, root.line, root.column, 1, "the file does not say its version",
                   "write 'version: 1' as the first line");
        return;
    }
    if (entry->value->kind == Node::Kind::scalar && entry->value->text == "1") return;
    const auto kind = entry->value->kind;
    const std::string got = kind == Node::Kind::scalar ? in_quotes(entry->value->text)
                            : kind == Node::Kind::list ? "a list"
                                                       : "a map";
    report.error(*entry->value, "'version' must be the number 1, not " + got,
                 "this affinityd knows version 1 only");
}

void read_nics(const Fields& fields, Policy& policy, Report& report) {
    const auto* entry = fields.find("nics");
    if (entry == nullptr) return;
    policy.nics_at = report.at(*entry->value);
    if (entry->value->kind == Node::Kind::scalar && entry->value->text == "auto") return;
    policy.nics_auto = false;
    policy.nics = read_patterns(*entry, report);
    for (const auto& nic : policy.nics)
        if (nic.text() == "auto")
            report.error(*entry->value, "'auto' cannot stand in a list of NICs", "write nics: auto");
}

bool uses_nic(const std::optional<CpuExpr>& expr) {
    const auto uses = [](const auto& self, const CpuExpr& part) -> bool {
        if (part.op == CpuExpr::Op::nic && part.name.empty()) return true;
        for (const auto& child : part.children)
            if (self(self, child)) return true;
        return false;
    };
    return expr && uses(uses, *expr);
}

/// Warns of keys without meaning under the chosen model; no error, because people switch models to compare
/// them.
void check_model(const Fields& fields, const Policy& policy, Report& report) {
    const bool near_nics = uses_nic(policy.placement.cpus) || uses_nic(policy.placement.near);
    for (const auto& [key, name, value] : fields.entries()) {
        const bool is_idle_nics = key->name == "nics" && policy.model == Model::process && !near_nics;
        if (is_idle_nics || (key->idle >> static_cast<unsigned>(policy.model) & 1U) != 0)
            report.warn(*name, "'" + std::string(key->name) + "' says nothing with 'affinity: " +
                                   std::string(to_string(policy.model)) + "'");
    }
}

void check_together(const Fields& fields, const Policy& policy, Report& report) {
    if (policy.everything_else && policy.exclusive != Exclusive::no)
        report.error(
            *fields.find("exclusive")->name,
            "'exclusive' with 'default: true': it would keep everything that has a policy off these CPUs");
    const auto* spread = fields.find("spread");
    if (spread != nullptr && policy.placement.spread != Spread::any && policy.placement.bind == Bind::set &&
        fields.find("bind") != nullptr)
        report.warn(*spread->name,
                    "'spread' says nothing with 'bind: set': every task may use all of the CPUs");
    if (policy.everything_else && fields.find("priority") != nullptr)
        report.warn(*fields.find("priority")->name,
                    "'priority' orders only default policies among themselves: they are asked last");
}

/// Warns where `measured` has nothing to choose between; no error, because people compare.
void check_measured(const Fields& fields, const Policy& policy, Report& report) {
    if (policy.model != Model::process && policy.model != Model::full) return;
    const bool is_together = policy.together == Together::measured;
    if (!is_together && !policy.placement.near_measured) return;
    const auto* key = fields.find(is_together ? "together" : "near");
    const std::string what = "'" + std::string(key->key->name) + ": measured'";
    if (policy.model == Model::full)
        report.warn(*key->name,
                    what + " says nothing of tasks on the lanes of NICs, where 'affinity: full' puts them");
    else if (is_together && policy.placement.spread == Spread::any)
        report.warn(*key->name,
                    what + " says nothing with 'spread: any': all threads of a process have the same CPUs",
                    "leave out 'spread'");
}

void read_selector(const Fields& fields, const Node& root, Policy& policy, Report& report) {
    policy.match.op = Selector::Op::all;
    const auto* entry = fields.find("match");
    policy.match_at = entry == nullptr ? policy.at : report.at(*entry->name);
    if (entry == nullptr) {
        for (std::size_t at = 0; at < root.items.size(); at += 2)
            if (root.items[at].text == "match") return; // there, but without a value: reported
        if (policy.model == Model::irq && policy.names_interrupts())
            policy.match.op = Selector::Op::any; // of nothing: named interrupts need no process
        else if (!policy.everything_else)
            report.add(Severity::error, root.line, root.column, 1,
                       "'match' is missing: the policy would be for every process",
                       "add 'match: {comm: NAME}', or 'default: true' if that is meant");
        return;
    }
    if (entry->value->kind == Node::Kind::map) {
        const auto before = report.errors();
        policy.match = read_map(*entry->value, false, report);
        if (report.errors() == before && !policy.everything_else && is_for_everybody(policy.match))
            report.warn(*entry->name, "these conditions would hold for nearly every process",
                        "say which are meant, or 'default: true' if all are");
        return;
    }
    const std::string got = entry->value->kind == Node::Kind::list ? "a list" : in_quotes(entry->value->text);
    report.error(*entry->value, "'match' must be a map of conditions, not " + got,
                 "for instance match: {comm: nginx}");
}

} // namespace

Policy read_document(const Node& root, Report& report) {
    Policy policy;
    policy.at = report.at(root);
    const Fields fields(root, keys_of(Level::top), report);
    read_version(fields, root, report);
    if (const auto* entry = fields.find("description"))
        policy.description = read_text(*entry, report).value_or("");
    if (const auto* entry = fields.find("priority"))
        policy.priority = read_integer(*entry, -100'000, 100'000, report).value_or(0);
    set_word(fields, "default", policy.everything_else, report);
    set_word(fields, "affinity", policy.model, report);
    read_nics(fields, policy, report);
    if (const auto* entry = fields.find("irqs")) {
        policy.irqs = read_patterns(*entry, report);
        policy.irqs_at = report.at(*entry->value);
    }
    read_selector(fields, root, policy, report);
    read_placement(fields, policy.placement, report);
    set_word(fields, "together", policy.together, report);
    if (policy.together == Together::measured || policy.placement.near_measured)
        place_singly(policy.placement);
    if (const auto* entry = fields.find("threads"))
        policy.threads = read_threads(*entry, policy.placement, report);
    if (const auto* entry = fields.find("allow_join")) policy.allow_join = read_slots(*entry, report);
    check_slots(fields.find("allow_join"), policy, report);
    each_word(policy, [&](std::string_view name, auto& value) { set_word(fields, name, value, report); });
    if (const auto* entry = fields.find("settle"))
        policy.settle = read_duration(*entry, report).value_or(policy.settle);
    check_model(fields, policy, report);
    check_together(fields, policy, report);
    check_measured(fields, policy, report);
    return policy;
}

} // namespace affinityd::policy
