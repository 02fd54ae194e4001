// SPDX-License-Identifier: Apache-2.0
#include "policy/slot_names.hpp"

#include "policy/suggest.hpp"

#include <algorithm>

namespace affinityd::policy {

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

std::vector<std::string> read_slots(const Fields::Entry& entry, Report& report) {
    std::vector<std::string> slots;
    for (const Node* element : read_list(entry, report))
        if (is_slot_name(element->text))
            slots.push_back(element->text);
        else
            no_name(*element, report);
    return slots;
}

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

} // namespace affinityd::policy
