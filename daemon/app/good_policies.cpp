// SPDX-License-Identifier: Apache-2.0
#include "app/good_policies.hpp"

#include "planner/check.hpp"
#include "policy/order.hpp"
#include "policy/set_check.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using policy::Diagnostic;
using policy::Severity;

bool is_error(const Diagnostic& diagnostic) { return diagnostic.severity == Severity::error; }

std::vector<Diagnostic> errors_of(const std::vector<Diagnostic>& diagnostics) {
    std::vector<Diagnostic> errors;
    std::ranges::copy_if(diagnostics, std::back_inserter(errors), is_error);
    return errors;
}

} // namespace

std::string place_of(const policy::Position& at) {
    if (at.line == 0) return at.file;
    return fmt::format("{}:{}:{}", at.file, at.line, at.column);
}

GoodPolicies::GoodPolicies(policy::ReadResult read, const std::vector<policy::Document>& documents,
                           const state::LastGood& last_good)
    : documents_(documents), last_good_(last_good) {
    result_.set = std::move(read.set);
    policy::add_source_lines(read.diagnostics, documents_);
    policy::sort_by_place(read.diagnostics);
    for (auto& found : read.diagnostics)
        (is_error(found) ? errors_ : remarks_).push_back(std::move(found));
    std::ranges::reverse(errors_);
    for (std::size_t i = 0; i < documents_.size(); ++i)
        places_.documents.try_emplace(documents_[i].path, i);
}

/// Where policies are; they stay there until the last of the errors is dealt with.
void GoodPolicies::begin_excluding() {
    const auto& set = result_.set.policies;
    places_.policies.clear();
    for (std::size_t i = 0; i < set.size(); ++i)
        places_.policies.emplace(set[i].name, i);
}

void GoodPolicies::end_excluding() {
    auto& set = result_.set.policies;
    std::vector<policy::Policy> left;
    for (std::size_t i = 0; i < set.size(); ++i)
        if (const auto at = places_.policies.find(set[i].name);
            at != places_.policies.end() && at->second == i)
            left.push_back(std::move(set[i]));
    set = std::move(left);
    if (!std::ranges::is_sorted(set, policy::comes_before)) std::ranges::sort(set, policy::comes_before);
}

/// The first fault of a file decides; further ones are told by `affinityctl check`.
void GoodPolicies::exclude(const Diagnostic& fault) {
    const std::string name(policy::policy_name(fault.at.file));
    auto& faults = result_.faults;
    const auto known = places_.faults.find(name);
    const auto in_set = places_.policies.find(name);
    const bool is_in_set = in_set != places_.policies.end();
    if (known != places_.faults.end() &&
        (!is_in_set || result_.set.policies[in_set->second].at.file != fault.at.file))
        return;
    if (is_in_set) places_.policies.erase(in_set);
    if (known != places_.faults.end()) { // its last good text does not do either
        auto& entry = faults[known->second];
        entry.note = "so has its last good version, " + place_of(fault.at) + ": " + fault.message;
        entry.in_force.clear();
        return;
    }
    places_.faults.emplace(name, faults.size());
    auto& entry = faults.emplace_back();
    entry.at = fault.at;
    entry.policy = name;
    entry.message = fault.hint.empty() ? fault.message : fault.message + " (" + fault.hint + ")";
    entry.shown = policy::to_string(fault, true);
    take_last_good(fault, entry);
}

void GoodPolicies::take_last_good(const Diagnostic& fault, status::FileFault& into) {
    const auto found = last_good_.find(into.policy);
    if (!found) into.note = "its last good version cannot be used: " + found.error().to_string();
    const auto kept = found.value_or(std::nullopt);
    const auto place = places_.documents.find(fault.at.file);
    const auto* own = place == places_.documents.end() ? nullptr : &documents_[place->second];
    if (!kept || (own != nullptr && own->fault.empty() && own->text == kept->text)) return;
    auto again = policy::read_policies({{kept->path, kept->text}});
    if (again.set.policies.size() != 1 || !again.ok()) return;
    into.in_force = kept->path;
    auto& set = result_.set.policies;
    places_.policies.insert_or_assign(again.set.policies.front().name, set.size());
    set.push_back(std::move(again.set.policies.front()));
    places_.documents.try_emplace(kept->path, documents_.size());
    documents_.push_back({kept->path, kept->text});
}

/// Of policies at fault side by side.
Diagnostic GoodPolicies::last_of(const std::vector<Diagnostic>& errors) const {
    std::unordered_map<std::string_view, std::size_t> order; // by file
    for (const auto& policy : result_.set.policies)
        order.try_emplace(policy.at.file, order.size());
    return *std::ranges::max_element(errors, {}, [&](const Diagnostic& found) {
        const auto at = order.find(found.at.file);
        return at == order.end() ? order.size() : at->second;
    });
}

std::set<std::string, std::less<>> GoodPolicies::newcomers() const {
    std::set<std::string, std::less<>> names;
    for (const auto& policy : result_.set.policies) {
        const auto kept = last_good_.find(policy.name).value_or(std::nullopt);
        const auto place = places_.documents.find(policy.at.file);
        if (!kept || place == places_.documents.end() || documents_[place->second].text != kept->text)
            names.insert(policy.name);
    }
    return names;
}

bool GoodPolicies::step(const machine::Machine& machine) {
    if (!errors_.empty()) {
        if (!std::exchange(is_excluding_, true)) begin_excluding();
        exclude(errors_.back());
        errors_.pop_back();
        return false;
    }
    if (std::exchange(is_excluding_, false)) {
        end_excluding();
        return false;
    }
    checked_.clear();
    policy::check_set(result_.set, checked_);
    policy::add_source_lines(checked_, documents_);
    // Each policy of a ring is at fault, and without one of them the others are not.
    if (const auto errors = errors_of(checked_); !errors.empty()) {
        errors_ = {last_of(errors)};
        return false;
    }
    auto here = planner::check_on_machine(result_.set, machine, {.newcomers = newcomers()});
    policy::add_source_lines(here, documents_);
    errors_ = errors_of(here);
    std::ranges::reverse(errors_);
    std::ranges::move(here, std::back_inserter(checked_));
    return errors_.empty();
}

GoodPolicies::Result GoodPolicies::take() {
    std::ranges::move(checked_, std::back_inserter(remarks_));
    policy::add_source_lines(remarks_, documents_);
    policy::sort_by_place(remarks_);
    for (const auto& remark : remarks_)
        result_.warnings.push_back(policy::to_string(remark, true) + "\n");
    for (const auto& fault : result_.faults)
        result_.faulty.insert(fault.policy);
    std::unordered_map<std::string_view, const std::string*> texts; // by path
    for (const auto& document : documents_)
        texts.insert_or_assign(document.path, &document.text);
    for (const auto& policy : result_.set.policies)
        if (!result_.faulty.contains(policy.name))
            result_.good.emplace(policy.name, *texts.at(policy.at.file));
    std::ranges::sort(result_.faults, {}, [](const auto& fault) { return fault.at.file; });
    return std::move(result_);
}

std::string in_its_place(const status::FileFault& fault) {
    if (fault.policy.empty()) return fault.note;
    const auto why = fault.note.empty() ? "" : " (" + fault.note + ")";
    if (fault.in_force.empty()) return "left out" + why;
    return "its last good version stays in force: " + fault.in_force;
}

std::string to_string(const status::FileFault& fault) {
    return fault.shown + "\n" + in_its_place(fault) + "\n";
}

} // namespace affinityd::app
