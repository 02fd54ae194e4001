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
        if (is_error(found))
            exclude(std::move(found));
        else
            remarks_.push_back(std::move(found));
}

/// The first fault of a file decides; further ones are told by `affinityctl check`.
void GoodPolicies::exclude(Diagnostic fault) {
    const std::string name(policy::policy_name(fault.at.file));
    auto& faults = result_.faults;
    const auto known = std::ranges::find(faults, name, &status::FileFault::policy);
    const auto in_set = std::ranges::find(result_.set.policies, name, &policy::Policy::name);
    if (known != faults.end() && (in_set == result_.set.policies.end() || in_set->at.file != fault.at.file))
        return;
    if (in_set != result_.set.policies.end()) result_.set.policies.erase(in_set);
    if (known != faults.end()) { // its last good text does not do either
        known->note = "so has its last good version, " + place_of(fault.at) + ": " + fault.message;
        known->in_force.clear();
        return;
    }
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
    const auto own = std::ranges::find(documents_, fault.at.file, &policy::Document::path);
    if (!kept || (own != documents_.end() && own->fault.empty() && own->text == kept->text)) return;
    auto again = policy::read_policies({{kept->path, kept->text}});
    if (again.set.policies.size() != 1 || !again.ok()) return;
    into.in_force = kept->path;
    auto& set = result_.set.policies;
    set.push_back(std::move(again.set.policies.front()));
    std::ranges::sort(set, policy::comes_before);
    documents_.push_back({kept->path, kept->text});
}

void GoodPolicies::exclude_last(const std::vector<Diagnostic>& errors) {
    const auto& set = result_.set.policies;
    const auto order = [&](const Diagnostic& found) {
        return std::ranges::find(set, found.at.file, [](const auto& policy) { return policy.at.file; }) -
               set.begin();
    };
    exclude(*std::ranges::max_element(errors, {}, order));
}

bool GoodPolicies::step(const machine::Machine& machine) {
    checked_.clear();
    policy::check_set(result_.set, checked_);
    policy::add_source_lines(checked_, documents_);
    // Each policy of a ring is at fault, and without one of them the others are not.
    if (const auto errors = errors_of(checked_); !errors.empty()) {
        exclude_last(errors);
        return false;
    }
    auto here = planner::check_on_machine(result_.set, machine.topology, machine.nics);
    policy::add_source_lines(here, documents_);
    const auto errors = errors_of(here);
    for (const auto& error : errors)
        exclude(error);
    std::ranges::move(here, std::back_inserter(checked_));
    return errors.empty();
}

GoodPolicies::Result GoodPolicies::take() {
    std::ranges::move(checked_, std::back_inserter(remarks_));
    policy::add_source_lines(remarks_, documents_);
    policy::sort_by_place(remarks_);
    for (const auto& remark : remarks_)
        result_.warnings += policy::to_string(remark, true) + "\n";
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
