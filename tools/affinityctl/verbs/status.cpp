// SPDX-License-Identifier: Apache-2.0
// affinityctl status: whether all is as the policies want it, or a problem list with the commands that help.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "measure/statistics.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace {

using affinityd::counted;
using nlohmann::json;
using std::chrono::system_clock;

struct StatusOptions {
    std::string subject;
    bool failed = false; ///< of threads and queues only those that should be elsewhere
    bool quiet = false;
    bool no_pager = false;
    [[nodiscard]] bool details() const { return !subject.empty(); } ///< threads, queues and costs one by one
};

constexpr std::size_t most_findings = 8; // the screen is for the rest, too

std::string age(const json& time) {
    const auto then = time_in(time);
    return then ? age_of(*then, system_clock::now()) : "?";
}

std::string ago(const json& time) { return time_in(time) ? age(time) + " ago" : "not yet"; }

std::string next_pass(const json& status) {
    if (status.value("reconciling", false)) return ", one is under way";
    const auto last = time_in(member(status, "last_pass_at"));
    const std::chrono::seconds pause(count(status, "reconcile_seconds"));
    if (!last || pause.count() == 0) return {};
    const auto left = std::chrono::ceil<std::chrono::seconds>(*last + pause - system_clock::now());
    return fmt::format(", the next in {} s", std::max<long long>(1, left.count()));
}

/// "": not known, or it has just begun.
std::string for_how_long(const json& since) {
    const auto then = time_in(since);
    return !then || system_clock::now() - *then < std::chrono::minutes(1) ? "" : " (for " + age(since) + ")";
}

/// True for the state of a thread or queue that should be elsewhere.
bool is_out_of_place(const json& thread_or_queue) {
    constexpr std::array settled{"in place", "left alone", "unwanted", "yielded",
                                 "kept off", "released",   "not read", "decided by another policy"};
    return std::ranges::find(settled, text(thread_or_queue, "state")) == settled.end();
}

/// How many threads and queues a dry run would change: "3 threads and 1 queue"; "": none.
std::string would_change(const json& status) {
    const auto number = [](const json& parts) {
        return static_cast<std::size_t>(std::ranges::count_if(
            parts, [](const json& part) { return text(part, "state") == "would change"; }));
    };
    std::size_t threads = 0;
    for (const auto& process : list(status, "processes"))
        threads += number(list(process, "threads"));
    const auto queues = number(list(status, "queues"));
    return fmt::format("{}{}{}", threads == 0 ? "" : counted(threads, "thread"),
                       threads > 0 && queues > 0 ? " and " : "", queues == 0 ? "" : counted(queues, "queue"));
}

/// The headline, without what is the same for all.
std::string verdict_of(const json& status) {
    const auto subject = text(status, "subject");
    const auto name = subject.empty() ? "affinityd " + text_of(status, "version") + " is running" : subject;
    const std::string link = subject.empty() ? " and" : "";
    const auto health = text(status, "health");
    if (health == "attention") return name + link + " NEEDS ATTENTION";
    if (health == "settling") return name + link + " needs no attention";
    const auto in_place = name + (subject.empty() ? ", " : ": ") + "all is in place";
    if (!status.value("dry_run", false)) return in_place;
    return would_change(status).empty() ? in_place + " by itself" : name;
}

/// Whether all is well, and all problems, or the gravest.
void add_verdict(const json& status, const StatusOptions& options, Document& into) {
    const auto& problems = list(status, "problems");
    const auto shown =
        options.details() || options.failed ? problems.size() : std::min(problems.size(), most_findings);
    auto rest = options.details() ? std::string()
                                  : fmt::format(" (pid {}, for {})", text_of(status, "pid"),
                                                age(member(status, "started_at")));
    if (status.value("dry_run", false)) {
        const auto would = would_change(status);
        rest += ", DRY RUN: nothing is changed" + (would.empty() ? "" : "; " + would + " would be");
    }
    const auto look = needs_attention(status) ? Document::Look::bad : Document::Look::good;
    into.add(Document::Line{{{verdict_of(status), look}, {rest}}});
    for (std::size_t i = 0; i < shown; ++i)
        if (const auto end = text(problems[i], "until"); end.empty())
            into.add(Document::Problem{sentence_of(problems[i]) + for_how_long(member(problems[i], "since")),
                                       text(problems[i], "hint")});
        else
            into.line(fmt::format("acknowledged until {}: {}", end, text(problems[i], "name")), "  * ");
    if (needs_attention(status) && !options.details())
        into.line("if that is intended: affinityctl acknowledge " + text(problems[0], "name"));
    if (shown < problems.size())
        into.line(fmt::format("and {} more: affinityctl status --failed", problems.size() - shown), "  * ");
    if (const auto others = count(status, "problems_elsewhere"); others > 0)
        into.line(fmt::format("{} elsewhere: affinityctl status", counted(others, "problem")));
}

void add_load(const json& status, Document& into) {
    const auto load = member(status, "load");
    const auto& faults = list(load, "faults");
    const auto result = !text(load, "refused").empty() ? "refused"
                        : faults.empty()               ? "no errors"
                                                       : counted(faults.size(), "file") + " with errors";
    const auto lost = count(status, "events_lost");
    into.line(fmt::format("last reload {}: {}; {} in force; last full pass {}{}{}", ago(member(load, "at")),
                          result, counted(list(status, "policies").size(), "policy", "policies"),
                          ago(member(status, "last_pass_at")), next_pass(status),
                          lost == 0 ? "" : "; events were lost " + counted(lost, "time")));
}

/// The cost of a gigabyte now, against that under the policy before.
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
void add_policies(const json& status, Document& into) {
    if (list(status, "policies").empty()) return into.paragraph(no_policies);
    Document::Table table{
        policy_fields,
        json::array(),
        {"POLICY", "MODEL", "CPUS", "NICS", "PROCS", "THREADS", "QUEUES", "LOCAL", "PUT RIGHT", "COST"}};
    auto queues = queues_by(status, "policy");
    for (json policy : list(status, "policies")) {
        const auto name = text_of(policy, "name");
        policy["queues_held"] = queues[name].held;
        policy["queues_wanted"] = queues[name].wanted;
        policy["cost"] = gain_of(status, name);
        table.rows.push_back(std::move(policy));
    }
    into.add(std::move(table)).gap = true;
    if (const auto balance = balance_line(status); text(status, "subject").empty() && !balance.empty())
        into.line(balance);
}

void add_table(Document::Table table, Document& into) {
    if (!table.rows.empty()) into.add(std::move(table)).gap = true;
}

/// `out_of_place`: only threads and queues that should be elsewhere.
void add_parts(const json& status, bool out_of_place, Document& into) {
    Document::Table threads{thread_fields},
        queues{queue_fields, json::array(), {"NIC", "WHAT", "POLICY", "NOW", "WANTED", "STATE", "WHY"}};
    for (const auto& process : list(status, "processes"))
        for (json thread : list(process, "threads")) {
            if (out_of_place && !is_out_of_place(thread)) continue;
            thread["pid"] = process["pid"];
            thread["policy"] = process["policy"];
            threads.rows.push_back(std::move(thread));
        }
    for (const auto& queue : list(status, "queues"))
        if (!out_of_place || is_out_of_place(queue)) queues.rows.push_back(queue);
    add_table(std::move(threads), into);
    add_table(std::move(queues), into);
}

/// Lines on a policy that steers listeners or tasks, or did until lately.
std::vector<std::string> steer_notes(const json& policy) {
    std::vector<std::string> notes;
    std::size_t there = 0, all = 0;
    for (const auto& group : list(policy, "at_arrivals")) {
        all += count(group, "tasks");
        if (group.value("is_there", false)) there += count(group, "tasks");
    }
    if (all > 0)
        return {fmt::format("{} of {} {} on the lane where {} packets arrive", there, counted(all, "task"),
                            there == 1 ? "is" : "are", there == 1 ? "its" : "their")};
    const auto steer = member(policy, "steer");
    const auto listeners = [](std::uint64_t number) {
        return counted(number, "listener is", "listeners are");
    };
    if (const auto steered = count(steer, "listeners"); steered > 0)
        notes.push_back(listeners(steered) + " steered: what arrives on a lane goes to the lane's worker");
    for (const auto& group : list(steer, "left"))
        notes.push_back(listeners(count(group, "listeners")) + " not steered: " + text(group, "why"));
    return notes;
}

/// How many threads of a policy have put themselves into slots; "" where none may.
std::string joined_note(const json& policy) {
    const auto joins = member(policy, "joined");
    if (!joins.is_object()) return {};
    std::vector<std::string> slots;
    const auto counts = member(joins, "slots");
    for (const auto& [slot, threads] : counts.items())
        slots.push_back(slot + " " + cell(threads));
    const auto threads = count(joins, "threads");
    return fmt::format("{} joined ({})",
                       threads == 0 ? "no thread has" : counted(threads, "thread has", "threads have"),
                       fmt::join(slots, ", "));
}

void add_notes(const json& status, const StatusOptions& options, Document& into) {
    const auto note = [&](const std::string& sentence, const std::string& command = {}) {
        into.add(Document::Problem{"note: " + sentence, command, ""}).gap = true;
    };
    for (const auto& each : list(status, "notes"))
        note(sentence_of(each), text(each, "hint"));
    std::vector<std::pair<std::string, std::string>> notes;
    for (const auto& policy : list(status, "policies")) {
        const auto name = text(policy, "name");
        auto all = steer_notes(policy);
        all.insert(all.begin(), text(policy, "note"));
        all.push_back(joined_note(policy));
        for (const auto& each : all)
            if (!each.empty()) notes.emplace_back(name, each);
        if (const auto local = local_sentence(member(policy, "local")); options.details() && !local.empty())
            into.paragraph(fmt::format("policy {}: {}", name, local));
    }
    for (const auto& sentence : about_policies(notes))
        note(sentence);
    for (const auto& policy : list(status, "policies"))
        if (policy.value("released", false))
            note("policy " + text(policy, "name") + " was released by hand", "affinityctl apply");
    for (const auto& policy : list(status, "policies"))
        if (policy.contains("auto"))
            into.paragraph(
                fmt::format("policy {}: affinity: auto {}", text(policy, "name"), text(policy, "auto")));
    for (const auto& trial : list(status, "trials"))
        note(fmt::format("policy {} is on trial for {} s more (affinityctl keep {} installs it)",
                         text(trial, "policy"), count(trial, "seconds_left"), text(trial, "policy")),
             "affinityctl try " + text(trial, "policy") + " --back");
    for (const auto& pid : list(status, "released_processes"))
        note("process " + cell(pid) + " was released by hand", "affinityctl apply");
}

void add_others(const json& status, Document& into) {
    for (const auto& writer : list(status, "other_writers"))
        into.paragraph(fmt::format("other programs here: {} ({}): {}", text_of(writer, "name"),
                                   text_of(writer, "where"), text_of(writer, "note")));
    for (const auto& flood : list(status, "floods"))
        into.paragraph(
            fmt::format("user {}, most by pid {}: {} events a minute too many: looked at every {} s{}",
                        text_of(flood, "user"), text_of(flood, "pid"),
                        affinityd::grouped(count(flood, "events_per_minute")),
                        flood.value("looked_at_every_seconds", 0.0),
                        flood.value("muted", false) ? ", its renames and threads are not listened to" : ""));
    const auto report = member(status, "measurement"), measure = member(status, "measure");
    std::string hint;
    if (measure.is_object() && text(measure, "target").empty() && count(measure, "interval_seconds") > 0)
        hint = "it goes over loopback, which tests no NIC; to test one, write target: HOST:5001 under "
               "measure in " +
               text_of(measure, "settings");
    into.add(Document::Problem{report.is_object()
                                   ? fmt::format("last measurement of throughput, {}: {}",
                                                 ago(member(member(report, "last"), "time")),
                                                 text_of(report, "summary"))
                                   : "last measurement of throughput: none yet (affinityctl measure)",
                               hint, ""})
        .gap = true;
}

/// A status, in this order: whether all is well, or a list of problems; the last reload;
/// policies; notes; other programs; the last measurement.
Document status_document(json status, const StatusOptions& options) {
    Document document;
    add_verdict(status, options, document);
    if (!options.details()) add_load(status, document);
    add_policies(status, document);
    if (options.details() || options.failed) add_parts(status, options.failed, document);
    if (!options.failed) {
        add_notes(status, options, document);
        if (options.details())
            add_table({cost_fields, list(status, "costs")}, document);
        else
            add_others(status, document);
    }
    document.code = needs_attention(status) ? exit_findings : exit_ok;
    document.is_silent = options.quiet;
    document.by_columns = true;
    document.may_page = !options.no_pager;
    document.value = std::move(status);
    return document;
}

template <class Choice>
json those(const json& status, const char* key, const Choice& is_chosen) {
    json found = json::array();
    std::ranges::copy_if(list(status, key), std::back_inserter(found), is_chosen);
    return found;
}

/// The policy's counts, of these processes alone.
void recount(json& policy, const json& processes) {
    std::size_t held = 0, threads = 0, wanted = 0, in_place = 0, drifted = 0;
    for (const auto& process : processes) {
        if (text(process, "policy") != text(policy, "name")) continue;
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

CallError not_found(const json& status, const std::string& subject) {
    if (!those(status, "released_processes", [&](const json& pid) { return pid.dump() == subject; }).empty())
        return {exit_failure,
                "process " + subject + " was released by hand; affinityctl apply takes it up again"};
    std::set<std::string> names;
    for (const auto& policy : list(status, "policies"))
        names.insert(text(policy, "name"));
    for (const auto& queue : list(status, "queues"))
        names.insert(text(queue, "nic"));
    return {exit_failure,
            subject + ": nothing under policy has this name or number; `affinityctl explain` may know it" +
                guess(subject, {names.begin(), names.end()})};
}

/// The part of a status that concerns a policy or an interface (by name), a process (by its PID or one of its
/// TIDs) or a unit: everything about its processes, queues and policies, whose threads are counted anew.
/// Measurements are the machine's. `subject` names it in words.
json part_of(const json& status, const std::string& subject, const Globals& globals) {
    const auto is_named = [&](const char* key) {
        return [&subject, key](const json& each) { return text(each, key) == subject; };
    };
    const auto is_served_by = [](const std::string& nic) {
        return [nic](const json& process) {
            return std::ranges::find(list(process, "nics"), json(nic)) != list(process, "nics").end();
        };
    };
    std::set<std::string> policies;
    std::string kind = "policy ";
    auto processes = those(status, "processes", is_named("policy"));
    auto queues = those(status, "queues", is_named("policy"));
    if (!those(status, "policies", is_named("name")).empty()) {
        policies.insert(subject);
    } else {
        kind = "interface ";
        processes = those(status, "processes", is_served_by(subject));
        queues = those(status, "queues", is_named("nic"));
    }
    if (policies.empty() && processes.empty() && queues.empty()) {
        kind = subject.find('.') == std::string::npos ? "process " : "unit ";
        if (kind == "unit ") need(check_is_here(globals, "status " + subject));
        const auto pids = kind == "unit "
                              ? need(processes_of_unit(need(affinityd::host::Root::open("/")), subject))
                              : std::vector<int>{};
        processes = those(status, "processes", [&](const json& process) {
            return std::ranges::find(pids, process.value("pid", 0)) != pids.end() ||
                   std::to_string(count(process, "pid")) == subject ||
                   std::ranges::any_of(list(process, "threads"), [&](const json& thread) {
                       return std::to_string(count(thread, "tid")) == subject;
                   });
        });
        queues = those(status, "queues", [&](const json& queue) {
            return std::ranges::any_of(processes, is_served_by(text(queue, "nic")));
        });
        if (processes.empty()) throw not_found(status, subject);
    }
    for (const auto* parts : {&processes, &queues})
        for (const auto& each : *parts)
            policies.insert(text(each, "policy"));
    json part = status;
    part["subject"] = kind + subject;
    part["policies"] = those(status, "policies",
                             [&](const json& policy) { return policies.contains(text(policy, "name")); });
    for (auto& policy : part["policies"])
        recount(policy, processes);
    for (const char* key : {"problems", "notes", "units", "costs"})
        part[key] =
            those(status, key, [&](const json& each) { return policies.contains(text(each, "policy")); });
    const auto has = [&](const char* severity) {
        return !those(part, "problems", [&](const json& problem) {
                    return text(problem, "severity") == severity;
                }).empty();
    };
    part["health"] = has("attention") ? "attention" : has("settling") ? "settling" : "ok";
    part["problems_elsewhere"] = list(status, "problems").size() - list(part, "problems").size();
    part["measurement"] = nullptr;
    part["processes"] = std::move(processes);
    part["queues"] = std::move(queues);
    return part;
}

Outcome run_status(const StatusOptions& options, const Globals& globals) {
    if (globals.hosts.size() > 1) {
        if (options.details()) return failed(exit_usage, "several hosts: without SUBJECT");
        auto document = side_by_side(globals);
        document.is_silent = options.quiet;
        return document;
    }
    auto status = need(ask_daemon_object(globals, "GetStatus"));
    if (options.details()) status = part_of(status, options.subject, globals);
    return status_document(std::move(status), options);
}

} // namespace

Outcome documents::status(const Globals& globals) { return run_status({}, globals); }

void add_status(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "status",
                  .summary = "whether all is as the policies want it, and if not, what helps",
                  .example = "affinityctl status nginx",
                  .answer = status_answer,
                  .asks_hosts = true},
                 globals, status, run_status);
    verb->add_option("SUBJECT", options->subject,
                     "a policy, unit, PID or interface: its threads and queues one by one")
        ->check(not_empty());
    verb->add_flag("--failed", options->failed, "only what is not as it should be");
    verb->add_flag("-q,--quiet", options->quiet, "print nothing: the exit status says it");
    verb->add_flag("--no-pager", options->no_pager, "print all at once, also on a terminal");
}

} // namespace affinityctl
