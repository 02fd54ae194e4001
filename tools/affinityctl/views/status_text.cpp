// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/status_text.hpp"

#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/status_tables.hpp"
#include "affinityctl/views/table.hpp"
#include "base/escape.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

/// Some problems are no policy's.
std::string of_policy(const json& problem) {
    const auto policy = problem.value("policy", "");
    return policy.empty() ? policy : "policy " + policy + ": ";
}

/// "2,311"
std::string grouped(std::uint64_t value) {
    auto text = std::to_string(value);
    for (auto at = text.size(); at > 3; text.insert(at, ","))
        at -= 3;
    return text;
}

std::string flood_line(const json& flood) {
    return fmt::format("pid {} of user {}: {} events a minute: looked at every {} s{}", text_of(flood, "pid"),
                       text_of(flood, "user"), grouped(flood.value("events_per_minute", std::uint64_t{0})),
                       flood.value("looked_at_every_seconds", 0.0),
                       flood.value("muted", false) ? ", its renames and threads are not listened to" : "");
}

/// A daemon without a right is refused thousands of times for one reason.
std::string refusals(const json& status) {
    constexpr std::size_t shown = 3;
    std::map<std::string, std::vector<std::string>> by_reason;
    const auto refused = status.value("refused", json::object());
    for (const auto& [subject, why] : refused.items())
        by_reason[why.get<std::string>()].push_back(printable(subject));
    std::string text;
    for (const auto& [why, subjects] : by_reason) {
        for (std::size_t i = 0; i < std::min(shown, subjects.size()); ++i)
            text += fmt::format("\nrefused: {}: {}", subjects[i], why);
        if (subjects.size() > shown)
            text += fmt::format("\nrefused: {} more: {}", subjects.size() - shown, why);
    }
    return text;
}

std::string troubles(const json& status) {
    std::string text;
    for (const auto& problem : status.value("problems", json::array()))
        text += fmt::format("\nproblem: {}{}: {}", of_policy(problem), printable(text_of(problem, "subject")),
                            text_of(problem, "message"));
    for (const auto& policy : status.value("policies", json::array()))
        if (policy.contains("note"))
            text += fmt::format("\nnote: policy {}: {}", text_of(policy, "name"), text_of(policy, "note"));
    text += refusals(status);
    const auto others = status.value("claimed_by_others", json::array());
    for (const auto& other : others)
        for (const auto& subject : other.value("subjects", json::array()))
            text +=
                fmt::format("\nalso claimed by the affinityd in {}: {}",
                            printable(text_of(other, "runtime_dir")), printable(subject.get<std::string>()));
    const auto writers = status.value("other_writers", json::array());
    for (const auto& writer : writers)
        text += fmt::format("\nalso writing here: {} ({}): {}", text_of(writer, "name"),
                            printable(text_of(writer, "where")), printable(text_of(writer, "note")));
    for (const auto& flood : status.value("floods", json::array()))
        text += "\n" + flood_line(flood);
    return text.empty() ? text : affinityd::escaped_lines(text) + "\n";
}

/// What each file's fault is stands among the problems.
std::string load_line(const json& status) {
    const auto load = status.value("load", json::object());
    if (load.value("ok", true)) return {};
    if (!load.value("refused", "").empty())
        return fmt::format("last reload {}: REFUSED, what was in force before stays\n", text_of(load, "at"));
    const auto files = load.value("faults", json::array()).size();
    return fmt::format("last reload {}: {} with ERRORS, see below; all others are in force\n",
                       text_of(load, "at"), files == 1 ? "1 file" : fmt::format("{} files", files));
}

std::string measurement(const json& status) {
    const auto& last = status.value("measurement", json());
    if (last.is_null()) {
        return "\nmeasurement: none yet\n";
    }
    return fmt::format("\nmeasurement: {}\n",
                       last.contains("summary") ? last["summary"].get<std::string>() : last.dump());
}

} // namespace

std::string status_text(const json& status, bool color) {
    std::string text = fmt::format(
        "affinityd {} (pid {}){}, policies loaded {}\n", text_of(status, "version"), text_of(status, "pid"),
        status.value("dry_run", false) ? ", DRY RUN" : "", text_of(status, "loaded_at"));
    text += fmt::format(
        "CPUs online {}; {} changes can be undone; {} full passes, {} events handled, {} times events lost\n",
        text_of(status, "online"), text_of(status, "journal"), text_of(status, "reconciles"),
        text_of(status, "fast_path"), text_of(status, "events_lost"));
    if (const auto balance = balance_line(status); !balance.empty()) text += balance + "\n";
    text += load_line(status);
    return text + policy_rows(status, color) + thread_rows(status, color) + queue_rows(status, color) +
           troubles(status) + cost_rows(status, color) + measurement(status);
}

} // namespace affinityctl
