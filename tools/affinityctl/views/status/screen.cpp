// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/status/screen.hpp"

#include "affinityctl/daemon/members.hpp"
#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/policy_table.hpp"
#include "affinityctl/views/status/findings.hpp"
#include "affinityctl/views/status/tables.hpp"
#include "affinityctl/views/table.hpp"
#include "base/escape.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

constexpr std::size_t most_findings = 8; // the screen is for the rest, too

/// Adds paragraphs to a text.
class Screen {
  public:
    explicit Screen(const StatusView& view) : view_(view) {}
    void line(const std::string& text, const char* first = "") { text_ += wrapped(text, first, view_.page); }
    /// After an empty line.
    void paragraph(const std::string& text, const char* first = "") {
        text_ += '\n';
        line(text, first);
    }
    void table(const std::string& rows) { text_ += rows; }
    void hint(const std::string& text) {
        if (!text.empty()) line(text, view_.page.unicode ? "    \u2192 " : "    -> ");
    }
    [[nodiscard]] std::string ago(const json& time) const {
        const auto then = time_in(time);
        return then ? age_of(*then, view_.now) + " ago" : "not yet";
    }
    [[nodiscard]] std::string age(const json& time) const {
        const auto then = time_in(time);
        return then ? age_of(*then, view_.now) : "?";
    }
    [[nodiscard]] std::string next_pass(const json& status) const {
        if (status.value("reconciling", false)) return ", one is under way";
        const auto last = time_in(member(status, "last_pass_at"));
        const std::chrono::seconds pause(count(status, "reconcile_seconds"));
        if (!last || pause.count() == 0) return {};
        const auto left = *last + pause - view_.now;
        return fmt::format(", the next in {} s",
                           std::max<long long>(1, std::chrono::ceil<std::chrono::seconds>(left).count()));
    }
    /// "": not known, or it has just begun.
    [[nodiscard]] std::string for_how_long(const json& since) const {
        const auto then = time_in(since);
        return !then || view_.now - *then < std::chrono::minutes(1) ? "" : " (for " + age(since) + ")";
    }
    [[nodiscard]] std::string take() { return std::move(text_); }

  private:
    const StatusView& view_;
    std::string text_;
};

/// The headline, without what is the same for all.
std::string verdict_of(const json& status) {
    const auto subject = text(status, "subject");
    const auto who = subject.empty() ? "affinityd " + printable(text_of(status, "version")) + " is running"
                                     : printable(subject);
    const auto health = text(status, "health");
    if (health == "attention") return who + (subject.empty() ? " and" : "") + " NEEDS ATTENTION";
    if (health == "settling") return who + ", no action is needed: it settles";
    if (!status.value("dry_run", false)) return who + ", all is in place";
    return who + (would_change(status).empty() ? ", all is in place by itself" : "");
}

/// Whether all is well, and all problems, or the gravest.
void add_verdict(const json& status, const StatusView& view, Screen& screen) {
    const auto& problems = list(status, "problems");
    const auto shown =
        view.details || view.out_of_place ? problems.size() : std::min(problems.size(), most_findings);
    const auto verdict = verdict_of(status);
    auto rest = text(status, "subject").empty() ? fmt::format(" (pid {}, for {})", text_of(status, "pid"),
                                                              screen.age(member(status, "started_at")))
                                                : std::string();
    if (status.value("dry_run", false)) {
        const auto would = would_change(status);
        rest += ", DRY RUN: nothing is changed" + (would.empty() ? "" : "; " + would + " would be");
    }
    const auto fits = view.page.width == 0 || columns_of(verdict + rest) <= view.page.width;
    if (view.page.color && fits)
        screen.table(
            fmt::format("\033[1;{}m{}\033[0m{}\n", needs_attention(status) ? 31 : 32, verdict, rest));
    else
        screen.line(verdict + rest);
    for (std::size_t i = 0; i < shown; ++i) {
        screen.line(sentence_of(problems[i]) + screen.for_how_long(member(problems[i], "since")), "  * ");
        screen.hint(printable(text(problems[i], "hint")));
    }
    if (shown < problems.size())
        screen.line(fmt::format("and {} more: affinityctl status --failed", problems.size() - shown), "  * ");
    if (const auto others = count(status, "problems_elsewhere"); others > 0)
        screen.line(fmt::format("{} elsewhere: affinityctl status", counted(others, "problem")));
}

void add_load(const json& status, Screen& screen) {
    const auto load = member(status, "load");
    const auto& faults = list(load, "faults");
    const auto refused = text(load, "refused");
    const auto result = !refused.empty() ? "refused"
                        : faults.empty() ? "no errors"
                                         : counted(faults.size(), "file") + " with errors";
    const auto lost = count(status, "events_lost");
    screen.line(fmt::format("last reload {}: {}; {} in force; last full pass {}{}{}",
                            screen.ago(member(load, "at")), result,
                            counted(list(status, "policies").size(), "policy", "policies"),
                            screen.ago(member(status, "last_pass_at")), screen.next_pass(status),
                            lost == 0 ? "" : "; events were lost " + counted(lost, "time")));
}

void add_policies(const json& status, const StatusView& view, Screen& screen) {
    if (list(status, "policies").empty()) return screen.paragraph(no_policies);
    screen.table(policy_rows(status, view.page));
    if (!text(status, "subject").empty()) return;
    if (const auto balance = balance_line(status); !balance.empty()) screen.line(balance);
}

/// In full what the table has in short.
std::string local_note(const json& policy) {
    const auto local = member(policy, "local");
    if (!local.is_object()) return {};
    const auto core = [&](const char* key) {
        const auto part = member(member(local, key), "core");
        return part.is_number() ? 100 * part.get<double>() : 0;
    };
    return fmt::format("{:.0f} % of its packets are read on the core where they arrive, {:.0f} % would be by "
                       "chance ({})",
                       core("same"), core("chance"), counted(count(local, "samples"), "read"));
}

/// Lines on a policy that steers listeners.
std::vector<std::string> listener_notes(const json& steer) {
    std::vector<std::string> notes;
    if (const auto steered = count(steer, "listeners"); steered > 0)
        notes.push_back(fmt::format("{} steered: connections go to the worker on whose lane they arrive",
                                    counted(steered, "listener") + (steered == 1 ? " is" : " are")));
    for (const auto& group : list(steer, "left")) {
        const auto left = count(group, "listeners");
        notes.push_back(fmt::format("{} not steered: {}",
                                    counted(left, "listener") + (left == 1 ? " is" : " are"),
                                    printable(text(group, "why"))));
    }
    return notes;
}

/// Lines on a policy whose tasks or listeners are steered, or were until lately.
std::vector<std::string> steer_notes(const json& policy) {
    std::size_t there = 0, all = 0;
    for (const auto& group : list(policy, "at_arrivals")) {
        const auto tasks = group.value("tasks", std::size_t{0});
        all += tasks;
        if (group.value("is_there", false)) there += tasks;
    }
    if (all == 0) return listener_notes(member(policy, "steer"));
    return {fmt::format("{} of {} {} on the lane where {} packets arrive", there, counted(all, "task"),
                        there == 1 ? "is" : "are", there == 1 ? "its" : "their")};
}

/// Of a policy whose threads may put themselves into slots: how many have; "" of any other.
std::string joined_note(const json& policy) {
    const auto joined = member(policy, "joined");
    if (!joined.is_object()) return {};
    std::string slots;
    const auto counts = member(joined, "slots");
    for (const auto& [slot, threads] : counts.items())
        slots += fmt::format("{}{} {}", slots.empty() ? "" : ", ", printable(slot), cell(threads));
    const auto threads = count(joined, "threads");
    return fmt::format("{} joined ({})",
                       threads == 0 ? "no thread has"
                                    : counted(threads, "thread") + (threads == 1 ? " has" : " have"),
                       slots);
}

void add_notes(const json& status, const StatusView& view, Screen& screen) {
    for (const auto& problem : immovables_in(status)) {
        screen.paragraph("note: " + sentence_of(problem));
        screen.hint(printable(text(problem, "hint")));
    }
    for (const auto& policy : list(status, "policies")) {
        const auto name = printable(text(policy, "name"));
        if (const auto note = text(policy, "note"); !note.empty())
            screen.paragraph(fmt::format("note: policy {}: {}", name, printable(note)));
        if (const auto local = local_note(policy); view.details && !local.empty())
            screen.paragraph(fmt::format("policy {}: {}", name, local));
        for (const auto& steer : steer_notes(policy))
            screen.paragraph(fmt::format("note: policy {}: {}", name, steer));
        if (const auto joined = joined_note(policy); !joined.empty())
            screen.paragraph(fmt::format("note: policy {}: {}", name, joined));
        if (policy.value("released", false)) {
            screen.paragraph(fmt::format("note: policy {} was released by hand", name));
            screen.hint("affinityctl apply");
        }
    }
}

void add_others(const json& status, Screen& screen) {
    for (const auto& writer : list(status, "other_writers"))
        screen.paragraph(fmt::format("other programs here: {} ({}): {}", printable(text_of(writer, "name")),
                                     printable(text_of(writer, "where")),
                                     printable(text_of(writer, "note"))));
    for (const auto& flood : list(status, "floods"))
        screen.paragraph(fmt::format(
            "user {}, most by pid {}: {} events a minute too many: looked at every {} s{}",
            printable(text_of(flood, "user")), text_of(flood, "pid"),
            grouped(count(flood, "events_per_minute")), flood.value("looked_at_every_seconds", 0.0),
            flood.value("muted", false) ? ", its renames and threads are not listened to" : ""));
}

void add_measurement(const json& status, Screen& screen) {
    const auto report = member(status, "measurement");
    if (!report.is_object())
        return screen.paragraph("last measurement of throughput: none yet (affinityctl measure)");
    screen.paragraph(fmt::format("last measurement of throughput, {}: {}",
                                 screen.ago(member(member(report, "last"), "time")),
                                 printable(text_of(report, "summary"))));
}

} // namespace

std::string status_text(const json& status, const StatusView& view) {
    Screen screen(view);
    const bool is_whole = text(status, "subject").empty();
    add_verdict(status, view, screen);
    if (is_whole) add_load(status, screen);
    add_policies(status, view, screen);
    if (view.details || view.out_of_place) {
        screen.table(thread_rows(status, view.out_of_place, view.page));
        screen.table(queue_rows(status, view.out_of_place, view.page));
    }
    if (view.out_of_place) return screen.take();
    add_notes(status, view, screen);
    if (view.details) screen.table(cost_rows(status, view.page));
    if (!is_whole) return screen.take();
    add_others(status, screen);
    add_measurement(status, screen);
    return screen.take();
}

} // namespace affinityctl
