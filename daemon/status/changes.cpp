// SPDX-License-Identifier: Apache-2.0
#include "status/changes.hpp"

#include "base/text.hpp"
#include "measure/result.hpp"
#include "status/json.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityd::status {

namespace {

using nlohmann::json;

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
    std::string text;
    for (const auto& part : parts)
        if (!part.empty()) text += (text.empty() ? "" : std::string(between)) + part;
    return text;
}

std::string phrase(const SubjectCounts& counts, std::string_view verb) {
    return counts.any() ? to_string(counts) + " " + std::string(verb) : "";
}

std::string phrase(std::size_t count, std::string_view words, const std::string& reason = {}) {
    if (count == 0) return {};
    return fmt::format("{} {}", count, words) + (reason.empty() ? "" : ": " + reason);
}

/// A kind of subject, its key and its noun.
struct Kind {
    std::size_t SubjectCounts::*count;
    const char* key;
    const char* noun;
};
constexpr std::array kinds{Kind{&SubjectCounts::threads, "threads", "thread"},
                           Kind{&SubjectCounts::interrupts, "interrupts", "interrupt"},
                           Kind{&SubjectCounts::steering, "steering", "steering setting"},
                           Kind{&SubjectCounts::units, "units", "unit"}};

json counts_json(const SubjectCounts& counts) {
    json value;
    for (const auto& kind : kinds)
        value[kind.key] = counts.*kind.count;
    return value;
}

json policy_json(const std::string& name, const PolicyChanges& changes) {
    return {{"name", name},
            {"placed", counts_json(changes.placed)},
            {"in_place", counts_json(changes.in_place)},
            {"put_back", counts_json(changes.put_back)},
            {"kept_off", changes.kept_off},
            {"left", changes.left},
            {"put_off", changes.put_off},
            {"refused", changes.refused},
            {"not_put_back", changes.not_put_back},
            {"reason", changes.reason.empty() ? json() : json(changes.reason)}};
}

/// Where nothing had to be changed.
std::string all_well(const Changes& changes) {
    SubjectCounts all;
    for (const auto& [name, policy] : changes.policies)
        all += policy.in_place;
    return all.any() ? "everything was in place already: " + to_string(all) : changes.if_none;
}

} // namespace

void SubjectCounts::add(const machine::Subject& subject) {
    if (std::holds_alternative<machine::TaskMask>(subject))
        ++threads;
    else if (std::holds_alternative<machine::IrqMask>(subject))
        ++interrupts;
    else if (std::holds_alternative<machine::UnitCpuset>(subject))
        ++units;
    else
        ++steering;
}

SubjectCounts& SubjectCounts::operator+=(const SubjectCounts& other) {
    for (const auto& kind : kinds)
        this->*kind.count += other.*kind.count;
    return *this;
}

std::string to_string(const SubjectCounts& counts) {
    std::vector<std::string> parts;
    for (const auto& kind : kinds)
        if (counts.*kind.count > 0) parts.push_back(counted(counts.*kind.count, kind.noun));
    return joined(parts, ", ");
}

std::string to_string(const PolicyChanges& changes, bool is_dry_run) {
    const std::string would = is_dry_run ? "would be " : "";
    const bool is_one = changes.in_place.sum() == 1;
    const bool has_failed = changes.refused + changes.not_put_back + changes.put_off > 0;
    const auto put_back = phrase(changes.put_back, "put back");
    return joined(
        {phrase(changes.placed, would + "placed"),
         changes.kept_off == 0 ? "" : counted(changes.kept_off, "thread") + " " + would + "kept off its CPUs",
         put_back,
         phrase(changes.not_put_back, put_back.empty() ? "could not be put back" : "could not",
                changes.reason),
         phrase(changes.left, changes.left == 1 ? "left as another program has set it"
                                                : "left as another program has set them"),
         phrase(changes.in_place, is_one ? "was in place already" : "were in place already"),
         phrase(changes.put_off, "not placed for now"), phrase(changes.refused, "refused", changes.reason),
         has_failed ? "affinityctl status --failed" : ""},
        "; ");
}

bool Changes::is_ok() const {
    return std::ranges::none_of(
        policies, [](const auto& entry) { return entry.second.refused + entry.second.not_put_back > 0; });
}

SubjectCounts Changes::put_back() const {
    SubjectCounts all;
    for (const auto& [name, policy] : policies)
        all += policy.put_back;
    return all;
}

std::string message_of(const Changes& changes) {
    std::vector<std::string> lines{changes.headline};
    bool is_told = false;
    for (const auto& [name, policy] : changes.policies)
        if (policy.is_worth_telling()) {
            lines.push_back((name.empty() ? "no policy" : name) + ": " +
                            to_string(policy, changes.is_dry_run));
            is_told = true;
        }
    if (!is_told) lines.push_back(all_well(changes));
    lines.push_back(changes.note);
    return joined(lines, "\n");
}

std::string to_text(const Changes& changes) {
    json policies = json::array();
    for (const auto& [name, policy] : changes.policies)
        policies.push_back(policy_json(name, policy));
    return dump({{"ok", changes.is_ok()},
                 {"dry_run", changes.is_dry_run},
                 {"message", message_of(changes)},
                 {"policies", std::move(policies)}});
}

std::string message_text(const std::string& message) {
    return dump({{"ok", true}, {"message", message}, {"policies", json::array()}});
}

Result<std::string> to_answer(const accounting::MeasurementReport& report) {
    if (report.last.outcome != measure::to_string(measure::Outcome::done))
        return fail("not measured: " + report.summary);
    return message_text(report.summary);
}

} // namespace affinityd::status
