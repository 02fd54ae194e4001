// SPDX-License-Identifier: Apache-2.0
// affinityctl explain: why something is where it is, as the daemon has it or as it would be on a recorded
// machine.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/offline/still_answers.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "host/root.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace {

using affinityd::counted;
using nlohmann::json;

constexpr const char* indent = "  ";
constexpr const char* released = "released by hand (affinityctl apply takes it up again)";

/// How local its reads are, and where its packets come from.
void add_local(const json& answer, Document& into) {
    const auto local = member(answer, "local");
    const auto sentence = local_sentence(local);
    if (sentence.empty()) return;
    into.line("packets: " + sentence, indent);
    for (const auto& place : list(answer, "arrivals"))
        into.line(fmt::format("{:3.0f} % arrive on CPU {}: {}",
                              100.0 * static_cast<double>(count(place, "samples")) /
                                  static_cast<double>(count(local, "samples")),
                              text_of(place, "cpu"), joined(list(place, "sources"), "; ")),
                  "    ");
}

/// Listeners of IPv4 and IPv6 on one port share a line.
void add_listeners(const json& answer, Document& into) {
    std::map<std::array<std::string, 4>, std::size_t> alike; // by port, CPU, thread, protocol
    for (const auto& listener : list(answer, "listeners"))
        ++alike[{text_of(listener, "port"), text_of(listener, "cpu"), text_of(listener, "thread"),
                 listener.value("protocol", "tcp")}];
    for (const auto& [where, number] : alike) {
        const auto& [port, cpu, thread, protocol] = where;
        const bool is_udp = protocol == "udp";
        into.line(fmt::format("{} of port {} for thread {}: {} that arrive on CPU {}",
                              counted(number, is_udp ? "UDP socket" : "listener"), port, thread,
                              is_udp ? "datagrams" : "connections", cpu),
                  indent);
    }
    for (const auto& [key, name] :
         {std::pair{"handed", "connections"}, std::pair{"handed_datagrams", "datagrams"}})
        if (const auto handed = member(answer, key); handed.is_object())
            into.line(fmt::format("{} in its network namespace so far: {} to the worker of their lane, {} to "
                                  "another (full queues passed over: {}), {} as the kernel chose",
                                  name, text_of(handed, "to_lane"), text_of(handed, "to_next"),
                                  text_of(handed, "full"), text_of(handed, "to_kernel")),
                      indent);
}

/// Stands for the name of another user's process, and for what a policy would compare.
constexpr const char* hidden = "not shown to other users";

std::string rule_text(const json& rule, bool is_hidden) {
    auto text = "policy " + text_of(rule, "policy");
    if (rule.value("matched", false))
        text += ": matches";
    else if (text_of(rule, "found") == "not recorded")
        text += ": not known, " + text_of(rule, "field") + " is not recorded";
    else {
        const auto field = text_of(rule, "field"), found = is_hidden ? hidden : text_of(rule, "found");
        if (field == "any")
            text += fmt::format(": no, nothing below any holds ({})", found);
        else if (field == "not")
            text += fmt::format(": no, this below not holds: {}", found);
        else if (is_hidden)
            text += fmt::format(": no, {} is not {} ({})", field, text_of(rule, "wanted"), found);
        else
            text += fmt::format(": no, {} is \"{}\" and not {}", field, found, text_of(rule, "wanted"));
    }
    return rule.contains("at") ? text + " (" + text_of(rule, "at") + ")" : text;
}

void add_task(const json& answer, Document& into) {
    const auto line = [&](std::string text) { into.line(std::move(text), indent); };
    const auto told = [&](const char* key) {
        if (answer.contains(key)) line(text_of(answer, key));
    };
    const bool is_hidden = text(answer, "comm").empty();
    into.line(
        fmt::format("process {} ({})", text_of(answer, "pid"), is_hidden ? hidden : text_of(answer, "comm")));
    for (const auto& rule : list(answer, "considered"))
        line(rule_text(rule, is_hidden));
    if (answer.contains("auto"))
        line(fmt::format("policy {}: affinity: auto {}", text_of(answer, "policy"), text_of(answer, "auto")));
    if (answer.contains("trial_seconds_left"))
        line(fmt::format("policy {} is on trial: it goes back in {} s", text_of(answer, "policy"),
                         text_of(answer, "trial_seconds_left")));
    told("kept_off");
    if (!answer.contains("kept_off") && member(answer, "policy").is_null()) line("no policy wants it");
    told("nics_note");
    if (answer.contains("way")) line("its way to the NIC: " + text_of(answer, "way"));
    add_listeners(answer, into);
    add_local(answer, into);
    for (const auto& group : list(answer, "at_arrivals"))
        line(counted(count(group, "tasks"), "task") + ": " + text_of(group, "why"));
    for (const auto& group : list(answer, "not_steered"))
        line(counted(count(group, "listeners"), "listener is", "listeners are") +
             " not steered: " + text_of(group, "why"));
    told("pinned");
    if (answer.value("released", false)) line(released);
    auto threads = list(answer, "threads");
    for (auto& thread : threads)
        if (is_hidden) thread["comm"] = hidden;
    into.add(Document::Table{explained_thread_fields, std::move(threads)}).gap = true;
}

void add_queues(const json& answer, Document& into) {
    const auto& rows = list(answer, "queues");
    if (answer.contains("note"))
        into.line(text_of(answer, "subject") + ": " + text_of(answer, "note"));
    else if (rows.empty())
        into.line("no policy places the interrupts of " + text_of(answer, "subject"));
    else
        into.add(Document::Table{
            queue_fields, rows, {"NIC", "WHAT", "NOW", "WANTED", "BEFORE US", "POLICY", "WHY"}});
}

/// An explanation after another one begins with an empty line.
void add_explanation(const json& answer, Document& into) {
    const auto begin = into.blocks.size();
    if (answer.contains("explanations")) {
        const bool is_policy = answer.contains("of_policy");
        const auto& parts = answer["explanations"];
        into.line(is_policy ? fmt::format("policy {} ({})", text_of(answer, "subject"),
                                          text_of(answer["of_policy"], "file"))
                            : "unit " + text_of(answer, "subject"));
        if (is_policy && answer["of_policy"].value("released", false))
            into.line(released, indent);
        else if (parts.empty())
            into.line(is_policy ? "it holds nothing now" : "its processes have ended", indent);
        for (const auto& part : parts)
            add_explanation(part, into);
    } else if (answer.contains("candidates")) {
        into.line(fmt::format("{} have the name {}: affinityctl explain PID",
                              counted(answer["candidates"].size(), "process", "processes"),
                              text_of(answer, "subject")));
        into.add(Document::Table{candidate_fields, answer["candidates"]});
    } else {
        answer.contains("pid") ? add_task(answer, into) : add_queues(answer, into);
    }
    if (begin > 0) into.blocks[begin].gap = true;
}

struct ExplainOptions {
    std::vector<std::string> subjects;
    std::vector<std::string> policies;
    std::string latency; ///< a file; "": none
};

using Answer = std::expected<json, CallError>;

/// The place where explanations come from.
struct Source {
    /// Explains a PID, a TID, an interface or an interrupt.
    std::function<Answer(const std::string&)> explain;
    /// Processes and queues under a policy: a status, or the plan of a recorded machine.
    std::function<json()> state;
    std::string root; ///< "": another machine, whose files are not read
};

/// Explains processes that have not ended meanwhile.
json explain_each(const Source& source, const std::vector<int>& pids) {
    json parts = json::array();
    for (const int pid : pids)
        if (auto part = source.explain(std::to_string(pid))) parts.push_back(std::move(*part));
    return parts;
}

/// The subjects that a policy stands for are its processes and its queues.
json explain_policy(const Source& source, const json& state, const json& policy) {
    const auto name = text(policy, "name");
    std::vector<int> pids;
    for (const auto& process : list(state, "processes"))
        if (text(process, "policy") == name) pids.push_back(process.value("pid", 0));
    auto parts = explain_each(source, pids);
    json queues = json::array();
    for (const auto& queue : list(state, "queues"))
        if (text(queue, "policy") == name) queues.push_back(queue);
    if (!queues.empty()) parts.push_back({{"subject", name}, {"queues", std::move(queues)}});
    return {{"subject", name}, {"of_policy", policy}, {"explanations", std::move(parts)}};
}

/// Else the subject is the name of a policy or a unit, or of processes, which are listed if there are
/// several.
Answer explain_one(const Source& source, const std::string& subject) {
    auto answer = source.explain(subject);
    if (answer || answer.error().code != exit_failure) return answer;
    const auto state = source.state();
    for (const auto& policy : list(state, "policies"))
        if (text(policy, "name") == subject) return explain_policy(source, state, policy);
    if (source.root.empty()) return answer;
    const auto root = need(affinityd::host::Root::open(source.root));
    if (subject.find('.') != std::string::npos)
        if (const auto pids = need(processes_of_unit(root, subject)); !pids.empty())
            return json{{"subject", subject}, {"explanations", explain_each(source, pids)}};
    const auto pids = need(processes_of_name(root, subject));
    if (pids.size() == 1)
        if (auto only = source.explain(std::to_string(pids.front()))) return only;
    if (pids.size() < 2) return answer;
    std::map<int, std::string> policies;
    for (const auto& process : list(state, "processes"))
        policies[process.value("pid", 0)] = text(process, "policy");
    json candidates = json::array();
    for (const int pid : pids)
        candidates.push_back(record(candidate_fields, {pid, subject, or_null(policies[pid])}));
    return json{{"subject", subject}, {"candidates", std::move(candidates)}};
}

/// Prints one answer as it is, several as a list.
Outcome explain_all(const Source& source, const ExplainOptions& options) {
    Document document;
    json answers = json::array();
    for (const auto& subject : options.subjects) {
        auto answer = explain_one(source, subject);
        if (!answer && (answer.error().code != exit_failure || options.subjects.size() == 1))
            return std::unexpected(answer.error());
        if (!answer) {
            document.code = answer.error().code;
            document.complaints.push_back("affinityctl: " + answer.error().message);
            continue;
        }
        add_explanation(*answer, document);
        answers.push_back(std::move(*answer));
    }
    document.value = options.subjects.size() > 1 ? std::move(answers) : std::move(answers[0]);
    return document;
}

Outcome run_explain(const ExplainOptions& options, const Globals& globals) {
    if (globals.is_recorded()) {
        const auto policies = read_policy_set(options.policies, globals);
        const auto still =
            need(StillMachine::read(policies, globals.root, latencies_for(globals, options.latency)));
        const auto explain = [&](const std::string& subject) -> Answer {
            auto answer = affinityctl::explain(*still, subject);
            if (!answer) return failed(answer.error());
            return std::move(*answer);
        };
        return explain_all({explain, [&] { return state_of(*still); }, globals.root}, options);
    }
    if (!options.policies.empty() || !options.latency.empty())
        return failed(exit_usage,
                      "--policies and --latency are for recorded machines (--root): the daemon explains with "
                      "what it has itself");
    return explain_all(
        {[&](const std::string& subject) { return ask_daemon_object(globals, "Explain", {subject}); },
         [&] { return need(ask_daemon_object(globals, "GetStatus")); },
         globals.host.empty() ? globals.root : ""},
        options);
}

} // namespace

Document explanation(const json& answer) {
    Document document;
    add_explanation(answer, document);
    document.value = answer;
    return document;
}

void add_explain(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] = add_verb(app,
                                          {.name = "explain",
                                           .summary = "why something is where it is",
                                           .example = "affinityctl explain 4711 eth0",
                                           .answer = explain_answer,
                                           .asks_hosts = true},
                                          globals, status, run_explain);
    verb->add_option("SUBJECT", options->subjects,
                     "PID, TID, interface, irq:NUMBER, label of an interrupt, policy, unit or name of a "
                     "process; several "
                     "are explained in turn")
        ->required();
    add_repeated(*verb, "--policies", options->policies,
                 "with --root: policy file or folder instead of the usual folders; may be given again",
                 "PATH");
    add_latency_option(*verb, options->latency);
}

} // namespace affinityctl
