// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/daemon/members.hpp"
#include "affinityctl/offline/subjects.hpp"
#include "affinityctl/present/output.hpp"
#include "affinityctl/present/page.hpp"
#include "affinityctl/values/counted.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/policy_table.hpp"
#include "affinityctl/views/queues.hpp"
#include "affinityctl/views/status/findings.hpp"
#include "affinityctl/views/table.hpp"
#include "base/escape.hpp"
#include "host/root.hpp"
#include "measure/statistics.hpp"
#include "policy/diagnostic.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityctl {

namespace {

/// Parts of a status that are wanted.
struct StatusView {
    bool details = false;      ///< threads, queues and costs one by one
    bool out_of_place = false; ///< of threads and queues only those that should be elsewhere
    WallTime now = std::chrono::system_clock::now();
    Page page{};
};

using nlohmann::json;

// Tables of the daemon's GetStatus, each after an empty line; "" where there is nothing to list.

using nlohmann::json;

std::string figure(const json& value) {
    return value.is_number() ? fmt::format("{:.3f}", value.get<double>()) : "-";
}

std::string rows_of(const Table& table, const Page& page) {
    return table.empty() ? "" : "\n" + table.to_string(page);
}

std::string part(std::uint64_t held, std::uint64_t wanted) {
    return wanted == 0 ? "-" : fmt::format("{}/{}", held, wanted);
}

std::string model_of(const json& policy) {
    const auto model = text_of(policy, "affinity");
    if (policy.value("released", false)) return model + ", released";
    return policy.value("active", true) ? model : model + ", off";
}

/// The part of its packets that are read on the core where they arrive.
std::string local_of(const json& policy) {
    const auto core = member(member(member(policy, "local"), "same"), "core");
    return core.is_number() ? fmt::format("{:.0f} %", 100 * core.get<double>()) : "-";
}

/// The cost of a gigabyte now, against what it cost under the policy before.
std::string gain_of(const json& status, const std::string& policy) {
    for (const auto& cost : list(status, "costs")) {
        if (text(cost, "policy") != policy) continue;
        const auto now = member(cost, "cpu_seconds_per_gb");
        const auto before = member(cost, "before");
        const auto then = member(before, "cpu_seconds_per_gb");
        if (!now.is_number() || !then.is_number() || then.get<double>() <= 0) break;
        return affinityd::measure::signed_percent(now.get<double>() / then.get<double>() - 1, 0) +
               " % since " + text_of(before, "model");
    }
    return "-";
}

/// A line for each policy.
std::string policy_rows(const json& status, const Page& page) {
    Table table(
        {"POLICY", "MODEL", "CPUS", "NICS", "PROCS", "THREADS", "QUEUES", "LOCAL", "PUT RIGHT", "COST"});
    const auto queues = queues_by_policy(status);
    for (const auto& policy : list(status, "policies")) {
        const auto name = text_of(policy, "name");
        const auto held = queues.contains(name) ? queues.at(name) : QueueCount{};
        table.add(
            {name, model_of(policy), text_of(policy, "cpus"),
             cell(joined(list(policy, "nics"), ",")) +
                 (text(policy, "note").starts_with("no interface ") ? " (!)" : ""),
             text_of(policy, "processes") + (text(policy, "note").starts_with("no process ") ? " (!)" : ""),
             part(count(policy, "threads_in_place"), count(policy, "threads_wanted")),
             part(held.held, held.wanted), local_of(policy), text_of(policy, "drift_put_right"),
             gain_of(status, name)});
    }
    return rows_of(table, page);
}

/// `out_of_place`: only threads, or queues, that should be elsewhere.
std::string thread_rows(const json& status, bool out_of_place, const Page& page) {
    Table table({"PID", "TID", "NAME", "POLICY", "CPUS", "WANTED", "STATE"});
    for (const auto& process : list(status, "processes"))
        for (const auto& thread : list(process, "threads")) {
            if (out_of_place && !is_out_of_place(thread)) continue;
            std::string state = text_of(thread, "state");
            if (const auto outcome = text_of(thread, "outcome"); outcome != "-" && outcome != "done")
                state += ", " + outcome;
            table.add({text_of(process, "pid"), text_of(thread, "tid"), text_of(thread, "comm"),
                       text_of(process, "policy"), text_of(thread, "present"), text_of(thread, "wanted"),
                       state});
        }
    return rows_of(table, page);
}

std::string queue_rows(const json& status, bool out_of_place, const Page& page) {
    Table table({"NIC", "WHAT", "POLICY", "NOW", "WANTED", "STATE", "WHY"});
    for (const auto& queue : list(status, "queues"))
        if (!out_of_place || is_out_of_place(queue))
            table.add({text_of(queue, "nic"), queue_name(queue), text_of(queue, "policy"),
                       text_of(queue, "present"), text_of(queue, "wanted"), text_of(queue, "state"),
                       queue_why(queue)});
    return rows_of(table, page);
}

/// The cost of the traffic of each policy since its policies were loaded, and in the period before.
std::string cost_rows(const json& status, const Page& page) {
    Table table({"POLICY", "MODEL", "NICS", "GB", "CPU S/GB", "CPU S/GB BEFORE"});
    for (const auto& cost : list(status, "costs")) {
        std::string nics;
        for (const auto& nic : list(cost, "nics"))
            nics += (nics.empty() ? "" : ",") + text_of(nic, "nic") +
                    (nic.value("shared", false) ? " (shared)" : "");
        const auto before = member(cost, "before");
        table.add({text_of(cost, "policy"), text_of(cost, "model"), nics,
                   fmt::format("{:.3f}", cost.value("bytes", 0.0) / 1e9),
                   figure(member(cost, "cpu_seconds_per_gb")),
                   before.is_null() ? "-"
                                    : figure(member(before, "cpu_seconds_per_gb")) + " (" +
                                          text_of(before, "model") + ")"});
    }
    return rows_of(table, page);
}

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
    if (health == "settling") return who + (subject.empty() ? " and" : "") + " needs no attention";
    const auto in_place = who + (subject.empty() ? ", " : ": ") + "all is in place";
    if (!status.value("dry_run", false)) return in_place;
    return would_change(status).empty() ? in_place + " by itself" : who;
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
        notes.push_back(fmt::format("{} steered: what arrives on a lane goes to the lane's worker",
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

/// How many threads of a policy have put themselves into slots; "" where none may.
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
    for (const auto& pid : list(status, "released_processes")) {
        screen.paragraph(fmt::format("note: process {} was released by hand", pid.get<int>()));
        screen.hint("affinityctl apply");
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
    const auto measure = member(status, "measure");
    screen.paragraph(report.is_object() ? fmt::format("last measurement of throughput, {}: {}",
                                                      screen.ago(member(member(report, "last"), "time")),
                                                      printable(text_of(report, "summary")))
                                        : "last measurement of throughput: none yet (affinityctl measure)");
    if (measure.is_object() && text(measure, "target").empty() && measure.value("interval_seconds", 0) > 0)
        screen.hint(fmt::format("it goes over loopback, which tests no NIC; to test one, write target: "
                                "HOST:5001 under measure in {}",
                                printable(text_of(measure, "settings"))));
}

/// A status that was judged() for a person, in this order: whether all is well, or what is wrong with the
/// command that mends it; the last reload; policies; problems; who else writes; the last measurement.
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

using nlohmann::json;

using Choice = std::function<bool(const json&)>;

json those(const json& status, const char* key, const Choice& is_chosen) {
    json found = json::array();
    std::ranges::copy_if(list(status, key), std::back_inserter(found), is_chosen);
    return found;
}

bool has_name(const json& names, const std::string& name) {
    return std::ranges::any_of(names, [&](const json& each) { return each == name; });
}

Choice is_of(const std::set<std::string>& policies, const char* key = "policy") {
    return [&policies, key](const json& each) { return policies.contains(text(each, key)); };
}

/// The policy's counts, of these processes alone.
void recount(json& policy, const json& processes) {
    const auto name = text(policy, "name");
    std::size_t held = 0, threads = 0, wanted = 0, in_place = 0, drifted = 0;
    for (const auto& process : processes) {
        if (text(process, "policy") != name) continue;
        ++held;
        for (const auto& thread : list(process, "threads")) {
            const auto state = text(thread, "state");
            ++threads;
            in_place += state == "in place" ? 1 : 0;
            drifted += state == "drifted" ? 1 : 0;
            wanted += state == "in place" || state == "immovable" || is_out_of_place(thread) ? 1 : 0;
        }
    }
    policy.update({{"processes", held},
                   {"threads", threads},
                   {"threads_wanted", wanted},
                   {"threads_in_place", in_place},
                   {"threads_drifted", drifted}});
}

/// Everything about these processes and queues and their policies, counted anew. Measurements are the
/// machine's. `subject`: in words.
json part_of(const json& status, const std::string& subject, json processes, json queues,
             std::set<std::string> policies = {}) {
    for (const auto* parts : {&processes, &queues})
        for (const auto& each : *parts)
            policies.insert(text(each, "policy"));
    json part = status;
    part["subject"] = subject;
    part["policies"] = those(status, "policies", is_of(policies, "name"));
    for (auto& policy : part["policies"])
        recount(policy, processes);
    for (const char* key : {"problems", "units", "costs"})
        part[key] = those(status, key, is_of(policies));
    part["measurement"] = nullptr;
    part["processes"] = std::move(processes);
    part["queues"] = std::move(queues);
    return part;
}

/// Also one that holds nothing.
std::optional<json> of_policy(const json& status, const std::string& name) {
    const std::set<std::string> policies{name};
    if (those(status, "policies", is_of(policies, "name")).empty()) return std::nullopt;
    return part_of(status, "policy " + name, those(status, "processes", is_of(policies)),
                   those(status, "queues", is_of(policies)), policies);
}

/// Its queues, and the processes that it serves.
std::optional<json> of_interface(const json& status, const std::string& name) {
    auto queues = those(status, "queues", [&](const json& queue) { return text(queue, "nic") == name; });
    auto processes = those(status, "processes",
                           [&](const json& process) { return has_name(list(process, "nics"), name); });
    if (queues.empty() && processes.empty()) return std::nullopt;
    return part_of(status, "interface " + name, std::move(processes), std::move(queues));
}

/// With the queues of the interfaces that serve them.
std::optional<json> of_processes(const json& status, const std::string& subject, const Choice& is_chosen) {
    auto processes = those(status, "processes", is_chosen);
    if (processes.empty()) return std::nullopt;
    json nics = json::array();
    for (const auto& process : processes)
        std::ranges::copy(list(process, "nics"), std::back_inserter(nics));
    auto queues =
        those(status, "queues", [&](const json& queue) { return has_name(nics, text(queue, "nic")); });
    return part_of(status, subject, std::move(processes), std::move(queues));
}

/// The part of the daemon's GetStatus that concerns a policy (by name), an interface (by name), or a process
/// (by its PID or one of its TIDs); its policies' threads are counted anew, and `subject` names it. No value:
/// the daemon knows no such thing.
std::optional<json> selected(const json& status, const std::string& subject) {
    if (auto found = of_policy(status, subject)) return found;
    if (auto found = of_interface(status, subject)) return found;
    return of_processes(status, "process " + subject, [&](const json& process) {
        return std::to_string(count(process, "pid")) == subject ||
               std::ranges::any_of(list(process, "threads"), [&](const json& thread) {
                   return std::to_string(count(thread, "tid")) == subject;
               });
    });
}

/// The same for the processes of a unit. No value: none of them is under policy.
std::optional<json> selected(const json& status, const std::string& unit, const std::vector<int>& pids) {
    const std::set<std::uint64_t> wanted(pids.begin(), pids.end());
    return of_processes(status, "unit " + unit,
                        [&](const json& process) { return wanted.contains(count(process, "pid")); });
}

/// Names that could have been meant, for a hint: policies and interfaces.
std::vector<std::string> names_in(const json& status) {
    std::set<std::string> names;
    for (const auto& policy : list(status, "policies"))
        names.insert(text(policy, "name"));
    for (const auto& queue : list(status, "queues"))
        names.insert(text(queue, "nic"));
    return {names.begin(), names.end()};
}

using nlohmann::json;

struct StatusOptions {
    std::string subject;
    bool failed = false;
    bool quiet = false;
    bool no_pager = false;
};

/// The part of a status that the subject stands for.
std::expected<json, CallError> meant_by(const json& status, const std::string& subject) {
    if (subject.empty()) return status;
    if (auto found = selected(status, subject)) return std::move(*found);
    if (subject.find('.') != std::string::npos) {
        const auto root = affinityd::host::Root::open("/");
        if (!root) return std::unexpected(CallError{exit_failure, root.error().to_string()});
        const auto pids = processes_of_unit(*root, subject);
        if (!pids) return std::unexpected(CallError{exit_failure, pids.error().to_string()});
        if (auto found = selected(status, subject, *pids)) return std::move(*found);
    }
    if (std::ranges::any_of(list(status, "released_processes"),
                            [&](const json& pid) { return pid.dump() == subject; }))
        return std::unexpected(
            CallError{exit_failure,
                      "process " + subject + " was released by hand; affinityctl apply takes it up again"});
    const auto names = names_in(status);
    const std::vector<std::string_view> words(names.begin(), names.end());
    const auto hint = affinityd::policy::did_you_mean(subject, words);
    return std::unexpected(CallError{exit_failure, subject +
                                                       ": nothing under policy has this name or "
                                                       "number; `affinityctl explain` may know it" +
                                                       (hint.empty() ? "" : " (" + hint + ")")});
}

int show_status(const StatusOptions& options, const Globals& globals) {
    const auto status = ask_daemon_object(globals, "GetStatus");
    if (!status) return complain(status.error());
    const auto part = meant_by(*status, options.subject);
    if (!part) return complain(part.error());
    auto answer_of = judged(*part);
    if (!options.subject.empty()) {
        const auto all = judged(*status)["problems"].size();
        answer_of["problems_elsewhere"] = all - std::min(all, answer_of["problems"].size());
    }
    if (globals.json && !options.quiet) {
        fmt::print("{}\n", dump(answer_of));
    } else if (!options.quiet) {
        StatusView view{.details = !options.subject.empty(), .out_of_place = options.failed};
        view.page = Page::of_output(globals.color);
        print_text(status_text(answer_of, view), !options.no_pager);
    }
    return needs_attention(answer_of) ? exit_findings : exit_ok;
}

} // namespace

void add_status(CLI::App& app, Globals& globals, int& status) {
    auto* verb =
        app.add_subcommand("status", "whether all is as the policies want it, and if not, what to do");
    const auto options = std::make_shared<StatusOptions>();
    verb->add_option("SUBJECT", options->subject,
                     "a policy, unit, PID or interface: its threads and queues one by one")
        ->check(not_empty());
    verb->add_flag("--failed", options->failed, "only what is not as it should be");
    verb->add_flag("-q,--quiet", options->quiet, "print nothing: the exit status says it");
    verb->add_flag("--no-pager", options->no_pager, "print all at once, also on a terminal");
    verb->callback([&globals, &status, options] { status = show_status(*options, globals); });
}

} // namespace affinityctl
