// SPDX-License-Identifier: Apache-2.0
#include "policy/document.hpp"

#include "policy/breadth.hpp"
#include "policy/slot_names.hpp"
#include "policy/suggest.hpp"
#include "policy/words.hpp"

#include <array>
#include <utility>

namespace affinityd::policy {

namespace {

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
    static constexpr std::array<std::string_view, 11> for_tasks{"spread",    "bind",  "together",  "threads",
                                                                "exclusive", "drift", "prior",     "memory",
                                                                "settle",    "steer", "allow_join"};
    const auto unused = [&](std::string_view key, std::string_view model) {
        if (const auto* entry = fields.find(key))
            report.warn(*entry->name, "'" + std::string(key) +
                                          "' says nothing with 'affinity: " + std::string(model) + "'");
    };
    const bool near_nics = uses_nic(policy.placement.cpus) || uses_nic(policy.placement.near);
    switch (policy.model) {
    case Model::none:
        for (const auto key : {"nics", "irqs", "cpus", "near", "smt", "separate", "steering", "means"})
            unused(key, "none");
        for (const auto key : for_tasks)
            unused(key, "none");
        break;
    case Model::irq:
        for (const auto key : for_tasks)
            unused(key, "irq");
        break;
    case Model::process:
        if (!near_nics) unused("nics", "process");
        unused("separate", "process");
        unused("steering", "process");
        unused("steer", "process");
        break;
    case Model::full:
        break;
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
        policy.match = read_match(*entry->value, report);
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
    const Fields fields(root, Level::top, report);
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
