// SPDX-License-Identifier: Apache-2.0
#include "policy/diagnostic.hpp"
#include "policy/fields.hpp"
#include "policy/set_check.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace affinityd::policy {

namespace {

using Field = Condition::Field;
constexpr std::string_view measured = "measured"; ///< in place of an expression after `near`

Selector::Op op_of(std::string_view name) {
    if (name == "not") return Selector::Op::none;
    return name == "any" ? Selector::Op::any : Selector::Op::all;
}

/// Warns of a pattern for names of tasks (`what`: "process", "thread") whose texts are all longer than any.
void check_name(const Pattern& pattern, std::string_view what, const Node& at, Report& report) {
    const auto& text = pattern.text();
    if (!pattern.is_too_long() || text.starts_with("kworker/"))
        return; // the kernel makes these when they are read
    const auto limit = fmt::format("a {} name has at most 15 bytes: {}", what, in_quotes(text));
    if (pattern.kept().empty())
        report.warn(at, limit + " matches nothing", "shorten what is around '*'");
    else
        report.warn(at, limit + " stands for what the kernel keeps of it",
                    "write " + in_quotes(pattern.kept()));
}

/// Patterns that can never match, said while the person still looks at the file.
void check_pattern(std::string_view key, const Pattern& pattern, const Node& at, Report& report) {
    const auto& text = pattern.text();
    if (key != "cmdline" && pattern.is_literal() && text.find(',') != std::string::npos)
        report.warn(at, in_quotes(text) + " is one name with a comma in it",
                    "write several as a list: [a, b]");
    if (key == "comm") check_name(pattern, "process", at, report);
    if (!pattern.is_literal()) return;
    if ((key == "exe" || key == "cgroup") && !text.starts_with('/'))
        report.warn(at, fmt::format("'{}' is a path from '/': {} matches nothing", key, in_quotes(text)),
                    "write " + in_quotes("*/" + text));
    if (key == "unit" && text.find('.') == std::string::npos)
        report.warn(at, "a unit's name has an ending: " + in_quotes(text) + " matches nothing",
                    "write " + in_quotes(text + ".service"));
}

/// The maps of a list of them; one map counts as a list of one.
std::vector<const Node*> read_maps(const Entry& entry, Report& report) {
    const auto name = entry.key->name;
    const bool are_rules = entry.key->type == Type::rules;
    const Node& value = *entry.value;
    std::vector<const Node*> maps;
    if (value.kind == Node::Kind::map) maps.push_back(&value);
    if (value.kind == Node::Kind::scalar)
        refuse_type(
            entry, report,
            fmt::format("for instance {}{}", are_rules ? "" : fmt::format("{}: ", name), entry.key->example));
    if (value.kind != Node::Kind::list) return maps;
    if (value.items.empty()) report.error(value, fmt::format("the list of '{}' is empty", name));
    for (std::size_t at = 0; at < value.items.size(); ++at) {
        const Node& item = value.items[at];
        if (item.kind == Node::Kind::map)
            maps.push_back(&item);
        else
            report.error(item.kind == Node::Kind::null ? *entry.name : item,
                         are_rules ? fmt::format("element {} of '{}' must be a map", at + 1, name)
                                   : fmt::format("an element of '{}' must be a map of conditions", name),
                         are_rules ? "for instance {name: \"io*\", cpus: \"0\"}"
                                   : "for instance {comm: nginx}");
    }
    return maps;
}

Selector read_map(const Node& map, bool user_units, Report& report);

Selector read_test(const Entry& entry, Field field, bool user_units, Report& report) {
    Selector selector{.op = Selector::Op::test, .children = {}, .condition = {}};
    auto& condition = selector.condition;
    condition.field = field;
    condition.user_units = user_units && (field == Field::unit || field == Field::container);
    condition.at = report.at(*entry.name);
    if (field == Field::kthread)
        read_value(entry, condition.flag, report);
    else if (field == Field::listen)
        read_value(entry, condition.ports, report);
    else
        read_value(entry, condition.patterns, report, [&](Pattern& pattern, const Node& at) {
            if (field == Field::comm) pattern = pattern.of_name();
            check_pattern(entry.key->name, pattern, at, report);
        });
    return selector;
}

/// `not`, `any`, `all`. "any" with one map of several keys would hold only if all of them do, which is never
/// what its author meant.
Selector read_combination(const Entry& entry, bool user_units, Report& report) {
    Selector selector{.op = op_of(entry.key->name), .children = {}, .condition = {}};
    const Node& value = *entry.value;
    if (value.kind == Node::Kind::map && selector.op == Selector::Op::any && value.items.size() > 2)
        report.error(value, "'any' with one map: all of its keys would have to hold",
                     "write a list, with '-' before each condition");
    for (const Node* map : read_maps(entry, report))
        selector.children.push_back(read_map(*map, user_units, report));
    return selector;
}

bool has_users_names(const Selector& selector) {
    return selector.condition.user_units || std::ranges::any_of(selector.children, has_users_names);
}

/// `user_units`: what a map around this one says.
Selector read_map(const Node& map, bool user_units, Report& report) {
    Selector all{.op = Selector::Op::all, .children = {}, .condition = {}};
    const auto keys = keys_of(Level::match);
    const Fields fields(map, keys, report);
    const auto* stated = fields.find("user-units");
    fields.read("user-units", user_units);
    for (const auto& entry : fields.entries()) {
        if (&entry == stated) continue;
        const Field field{static_cast<int>(entry.key - keys.data())}; // in the order of the table
        all.children.push_back(field <= Field::kthread ? read_test(entry, field, user_units, report)
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

/// False if the text is no slot's name: it was reported.
bool check_slot(const Node& at, Report& report) {
    if (is_slot_name(at.text)) return true;
    report.error(at, in_quotes(at.text) + " is no name for a slot", "1 to 31 letters, digits, and . _ -");
    return false;
}

/// The `slot` of a thread rule; "": it was reported.
std::string read_slot(const Entry& entry, Report& report) {
    const Node& value = *entry.value;
    if (value.kind != Node::Kind::scalar) refuse_type(entry, report);
    if (value.kind != Node::Kind::scalar || !check_slot(value, report)) return {};
    if (value.text != arrivals_slot) return value.text;
    report.error(value, "'arrivals' is the slot where packets arrive: it can be no rule's",
                 "choose another name");
    return {};
}

/// `allow_join`: those that are wrong are reported and left out. Each slot is one rule's, and those that may
/// be joined exist.
void read_slots(const Fields& fields, Policy& policy, Report& report) {
    const auto* entry = fields.find("allow_join");
    std::vector<const Node*> allowed;
    if (entry != nullptr) allowed = read_list(*entry, report);
    std::erase_if(allowed, [&](const Node* name) { return !check_slot(*name, report); });
    for (const Node* name : allowed)
        policy.allow_join.push_back(name->text);
    std::vector<std::string_view> known;
    const auto has = [](const auto& names, std::string_view name) {
        return std::ranges::find(names, name) != names.end();
    };
    for (const auto& rule : policy.threads) {
        if (rule.slot.empty()) continue;
        if (has(known, rule.slot))
            report.add(Severity::error, rule.at.line, rule.at.column, 1,
                       "two thread rules have the slot " + in_quotes(rule.slot),
                       "one rule says what a slot is");
        else if (!has(policy.allow_join, rule.slot))
            report.add(Severity::warning, rule.at.line, rule.at.column, 1,
                       "nobody may join the slot " + in_quotes(rule.slot), "add it to 'allow_join'");
        known.push_back(rule.slot);
    }
    known.push_back(arrivals_slot);
    for (const Node* name : allowed) {
        if (has(known, name->text)) continue;
        const auto meant = did_you_mean(name->text, known);
        report.error(*name, "no thread rule has the slot " + in_quotes(name->text),
                     meant.empty() ? "write 'slot: " + name->text + "' in a rule of 'threads'" : meant);
    }
}

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

void read_placement(const Fields& fields, Placement& placement, Report& report) {
    fields.read("cpus", placement.cpus);
    if (const auto* entry = fields.find("cpus")) placement.cpus_at = report.text_at(*entry->value);
    if (const auto* entry = fields.find("near")) {
        placement.near.reset();
        placement.near_measured = entry->value->kind == Node::Kind::scalar && entry->value->text == measured;
        placement.near_at = report.text_at(*entry->value);
        placement.near_room = entry->value->kind == Node::Kind::scalar && entry->value->text == "room";
        if (!placement.near_measured && !placement.near_room) fields.read("near", placement.near);
    }
    placement.has_spread |= fields.read("spread", placement.spread);
    placement.has_bind |= fields.read("bind", placement.bind);
    fields.read("smt", placement.smt);
}

/// `measured` puts each thread on a CPU of its own where the file does not say otherwise.
void place_singly(Placement& placement) {
    if (!placement.has_spread) placement.spread = Spread::cpu;
    if (!placement.has_bind) placement.bind = Bind::cpu;
}

/// `smt: pair` deals out cores, and each task has one CPU of its own.
void check_pairs(const Fields& fields, Placement& placement, const Node& map, Report& report) {
    if (placement.smt != Smt::pair) return;
    if (!placement.has_bind) placement.bind = Bind::cpu;
    const auto* entry = fields.find("smt");
    const Node& at = entry == nullptr ? map : *entry->name;
    if (placement.spread != Spread::core)
        report.error(at, "'smt: pair' deals out cores", "write 'spread: core', or 'smt: share'");
    else if (placement.bind != Bind::cpu)
        report.error(at, "'smt: pair' gives each task one CPU", "write 'bind: cpu', or 'smt: share'");
}

ThreadRule read_rule(const Node& map, const Placement& standard, Report& report) {
    ThreadRule rule;
    rule.at = report.at(map);
    rule.placement = standard;
    const Fields fields(map, keys_of(Level::thread), report);
    if (map.items.empty())
        report.error(map, "a thread rule without keys", "name the threads: {name: \"io*\", cpus: \"0\"}");
    if (const auto* entry = fields.find("name"))
        read_value(*entry, rule.names, report, [&](Pattern& name, const Node&) {
            name = name.of_name();
            check_name(name, "thread", *entry->value, report);
        });
    fields.read("index", rule.index);
    if (const auto* entry = fields.find("slot")) rule.slot = read_slot(*entry, report);
    fields.read("leave", rule.leave);
    fields.read("nics", rule.nics);
    read_placement(fields, rule.placement, report);
    if (rule.placement.near_measured) place_singly(rule.placement);
    if (!rule.leave) check_pairs(fields, rule.placement, map, report);
    if (const auto* entry = fields.find("near"); entry != nullptr && rule.placement.near_room)
        report.error(*entry->name, "'near: room' is for whole processes", "write it at the top of the file");
    for (const char* key : {"nics", "cpus", "near", "spread", "bind", "smt"})
        if (const auto* entry = rule.leave ? fields.find(key) : nullptr)
            report.error(*entry->name,
                         fmt::format("'{}' for threads that 'leave: true' says not to touch", key),
                         "remove one of the two");
    return rule;
}

void read_threads(const Entry& entry, Policy& policy, Report& report) {
    auto& rules = policy.threads;
    for (const Node* map : read_maps(entry, report)) {
        auto rule = read_rule(*map, policy.placement, report);
        const auto earlier =
            rules.size() > 1000
                ? rules.end()
                : std::ranges::find_if(rules, [&](const ThreadRule& other) { return covers(other, rule); });
        if (earlier != rules.end())
            report.warn(*map,
                        fmt::format("this rule is never reached: the one in line {} takes all of its threads",
                                    earlier->at.line),
                        "put the narrower rule first");
        rules.push_back(std::move(rule));
    }
}

void read_nics(const Entry& entry, Policy& policy, Report& report) {
    policy.nics_at = report.at(*entry.value);
    policy.nics_auto = entry.value->kind == Node::Kind::scalar && entry.value->text == "auto";
    if (policy.nics_auto) return;
    read_value(entry, policy.nics, report);
    for (const auto& nic : policy.nics)
        if (nic.text() == "auto")
            report.error(*entry.value, "'auto' cannot stand in a list of NICs", "write nics: auto");
}

bool uses_nic(const CpuExpr& expr) {
    return (expr.op == CpuExpr::Op::nic && expr.name.empty()) || std::ranges::any_of(expr.children, uses_nic);
}

/// Warns of keys without meaning under the chosen model; no error, because people switch models to compare
/// them.
void check_model(const Fields& fields, const Policy& policy, Report& report) {
    const auto uses = [](const std::optional<CpuExpr>& expr) { return expr && uses_nic(*expr); };
    const bool near_nics = uses(policy.placement.cpus) || uses(policy.placement.near);
    for (const auto& [key, name, value] : fields.entries()) {
        const bool is_idle_nics = key->name == "nics" && policy.model == Model::process && !near_nics;
        if (is_idle_nics || (key->idle >> static_cast<unsigned>(policy.model) & 1U) != 0)
            report.warn(*name, fmt::format("'{}' says nothing with 'affinity: {}'", key->name,
                                           to_string(policy.model)));
    }
}

/// Keys that do not go together; most are no error, because people compare.
void check_together(const Fields& fields, const Policy& policy, Report& report) {
    const auto name_of = [&](std::string_view key) -> const Node& { return *fields.find(key)->name; };
    if (policy.isolate && fields.find("exclusive") != nullptr && policy.exclusive == Exclusive::no)
        report.error(name_of("exclusive"),
                     "'exclusive: false' with 'isolate: true', which keeps tasks off, too",
                     "leave 'exclusive' out");
    if (policy.isolate && std::ranges::any_of(policy.irqs, matches_everything))
        report.warn(name_of("irqs"),
                    "'irqs' brings all interrupts to the CPUs that 'isolate: true' keeps interrupts off",
                    "name those that the program needs there");
    if (policy.everything_else && (policy.exclusive != Exclusive::no || policy.isolate))
        report.error(
            name_of(policy.isolate ? "isolate" : "exclusive"),
            fmt::format(
                "'{}' with 'default: true': it would keep everything that has a policy off these CPUs",
                policy.isolate ? "isolate" : "exclusive"));
    if (policy.placement.spread != Spread::any && policy.placement.bind == Bind::set &&
        fields.find("spread") != nullptr && fields.find("bind") != nullptr)
        report.warn(name_of("spread"),
                    "'spread' says nothing with 'bind: set': every task may use all of the CPUs");
    if (policy.everything_else && fields.find("priority") != nullptr)
        report.warn(name_of("priority"),
                    "'priority' orders only default policies among themselves: they are asked last");
    if (policy.placement.near_room && policy.together == Together::none &&
        policy.placement.spread != Spread::any)
        report.warn(name_of("near"), "'near: room' says nothing of threads that are dealt out one by one",
                    "write 'together: node'");
    const bool is_together = policy.together == Together::measured;
    if (!is_together && !policy.placement.near_measured) return;
    const std::string_view key = is_together ? "together" : "near";
    if (policy.model == Model::full)
        report.warn(name_of(key),
                    fmt::format("'{}: measured' says nothing of tasks on the lanes of NICs, where 'affinity: "
                                "full' puts them",
                                key));
    else if (policy.model == Model::process && is_together && policy.placement.spread == Spread::any)
        report.warn(name_of(key),
                    "'together: measured' says nothing with 'spread: any': all threads of a process have "
                    "the same CPUs",
                    "leave out 'spread'");
}

/// The words are those of Model, and `auto`.
void read_model(const Fields& fields, Policy& policy, Report& report) {
    const auto* entry = fields.find("affinity");
    std::size_t place = 0;
    if (entry == nullptr || !read_choice(*entry, place, report)) return;
    policy.model_auto = entry->key->values[place] == "auto";
    policy.model = policy.model_auto ? Model::full : static_cast<Model>(place);
}

void read_selector(const Fields& fields, const Node& root, Policy& policy, Report& report) {
    const auto* entry = fields.find("match");
    policy.match_at = entry == nullptr ? policy.at : report.at(*entry->name);
    if (!fields.names("match")) {
        if (policy.model == Model::irq && policy.names_interrupts())
            policy.match.op = Selector::Op::any; // of nothing: named interrupts need no process
        else if (!policy.everything_else)
            report.add(Severity::error, root.line, root.column, 1,
                       "'match' is missing: the policy would be for every process",
                       "add 'match: {comm: NAME}', or 'default: true' if that is meant");
    } else if (entry != nullptr && entry->value->kind != Node::Kind::map) {
        refuse_type(*entry, report, "for instance match: {comm: nginx}");
    } else if (entry != nullptr) {
        const auto before = report.errors();
        policy.match = read_map(*entry->value, false, report);
        if (report.errors() == before && !policy.everything_else && is_for_all(policy.match))
            report.warn(*entry->name, "these conditions would hold for nearly every process",
                        "say which are meant, or 'default: true' if all are");
    }
}

} // namespace

std::string_view field_name(Field field) {
    return keys_of(Level::match)[static_cast<std::size_t>(field)].name;
}

bool is_slot_name(std::string_view text) {
    const auto is_good = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
    };
    return !text.empty() && text.size() <= longest_slot && std::ranges::all_of(text, is_good);
}

Policy read_document(const Node& root, Report& report) {
    Policy policy;
    policy.at = report.at(root);
    const Fields fields(root, keys_of(Level::top), report);
    const auto* version = fields.find("version");
    if (!fields.names("version"))
        report.add(Severity::warning, root.line, root.column, 1, "the file does not say its version",
                   "write 'version: 1' as the first line");
    else if (version != nullptr && version->value->text != "1")
        refuse_type(*version, report, "this affinityd knows version 1 only");
    fields.read("description", policy.description);
    fields.read("priority", policy.priority);
    fields.read("default", policy.everything_else);
    read_model(fields, policy, report);
    if (const auto* entry = fields.find("nics")) read_nics(*entry, policy, report);
    fields.read("irqs", policy.irqs);
    fields.read("rps", policy.rps);
    if (const auto* entry = fields.find("rps")) policy.rps_at = report.text_at(*entry->value);
    read_selector(fields, root, policy, report);
    read_placement(fields, policy.placement, report);
    fields.read("together", policy.together);
    if (policy.together == Together::measured || policy.placement.near_measured)
        place_singly(policy.placement);
    check_pairs(fields, policy.placement, root, report);
    if (const auto* entry = fields.find("threads")) read_threads(*entry, policy, report);
    read_slots(fields, policy, report);
    each_word(policy, [&](std::string_view name, auto& value) { fields.read(name, value); });
    fields.read("settle", policy.settle);
    check_model(fields, policy, report);
    check_together(fields, policy, report);
    if (policy.isolate && policy.exclusive == Exclusive::no) policy.exclusive = Exclusive::yes;
    return policy;
}

} // namespace affinityd::policy
