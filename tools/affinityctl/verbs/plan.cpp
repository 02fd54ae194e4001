// SPDX-License-Identifier: Apache-2.0
// affinityctl plan: what the daemon would change now; with files, what these would change if they were
// installed; with --root, what a daemon that starts on the recorded machine would change. With --cpus: what
// sits on each CPU then.
// affinityctl explain: why something is where it is, as the daemon has it or as it would be on a recorded
// machine.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/client/occupancy.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "planner/check.hpp"
#include "planner/crowding.hpp"
#include "policy/policy.hpp"
#include "policy/reader.hpp"
#include "status/json.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace {

namespace planner = affinityd::planner;
namespace policy = affinityd::policy;
namespace status = affinityd::status;
using affinityd::counted;
using affinityd::inventory::Thread;
using nlohmann::json;

struct PlanOptions {
    std::vector<std::string> paths;
    bool cpus = false;
    std::string latency; ///< a file; "": none
};

/// Adds the tasks of a machine to a plan.
void plan_tasks(StillMachine& still, json& plan) {
    planner::NarrowProcesses narrow;
    for (const auto& process : still.processes()) {
        json placed = json::array();
        affinityd::CpuSet has;
        std::size_t threads = 0;
        still.plan(process, [&](const auto& thread, const planner::ThreadPlan& planned) {
            if (planned.action) plan["actions"].push_back(status::to_json(*planned.action));
            has |= planned.target ? planned.target->mask : thread.allowed;
            ++threads;
            if (planned.target)
                placed.push_back({{"tid", thread.id.tid},
                                  {"comm", thread.comm},
                                  {"wanted", planned.target->mask.to_list()}});
        });
        if (!process.policy) continue;
        plan["processes"].push_back({{"pid", process.scan.id().tid},
                                     {"policy", still.policies().policies[*process.policy].name},
                                     {"threads", std::move(placed)}});
        narrow.add(still.placements().policies[*process.policy], process.scan.id(), threads, has,
                   still.cpuset(process));
    }
    for (const auto& problem : narrow.problems())
        plan["problems"].push_back(status::to_json(problem));
}

/// Adds interrupts and steering; returns how many settings are not recorded, by policy.
std::map<std::string, std::size_t> plan_queues(StillMachine& still, json& plan) {
    std::map<std::string, std::size_t> unread;
    for (const auto& target : still.placements().queues) {
        if (target.rank > 0) continue; // another interface on the same line decides
        const auto present = still.present(target.subject);
        if (!present) {
            if (target.off.empty()) ++unread[target.policy];
            continue;
        }
        const auto action = planner::plan_queue(still.planning(), target, *present);
        if (action) plan["actions"].push_back(status::to_json(*action));
        if (!action && !target.off.empty()) continue; // it is on none of the CPUs that it is kept off
        plan["queues"].push_back(status::to_json(target.subject));
        if (!target.off.empty()) plan["queues"].back()["kept_off"] = true;
        plan["queues"].back().update({{"nic", target.nic.empty() ? "machine" : target.nic},
                                      {"policy", target.policy},
                                      {"wanted", (action ? action->to : target.wanted).to_string()}});
    }
    return unread;
}

/// Notes on all that is not known from files alone.
json notes_of(const StillMachine& still, const std::map<std::string, std::size_t>& unread) {
    json notes = json::array();
    const auto add = [&](const std::string& policy, const std::string& message) {
        json note{{"policy", policy}, {"message", message}};
        if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
    };
    const auto are = [](std::size_t number, const char* one, const char* many) {
        return counted(number, one, many) + (number == 1 ? " is" : " are");
    };
    for (const auto& part : still.missing_parts())
        add("", "not recorded, and nothing is planned for them: " + part);
    const auto& policies = still.policies().policies;
    std::map<std::pair<std::string, std::string>, std::size_t> undecided; // by policy and condition
    std::set<std::string> by_sockets;
    for (const auto& process : still.processes()) {
        for (const auto& verdict : still.consider(process))
            if (!verdict.matched && !still.is_recorded(process, verdict.field))
                ++undecided[{policies[verdict.policy].name, verdict.field}];
        if (process.policy && needs_sockets(policies[*process.policy]))
            by_sockets.insert(policies[*process.policy].name);
    }
    for (const auto& [key, number] : undecided)
        add(key.first, fmt::format("{} of {} not recorded: whether it matches is not known", key.second,
                                   are(number, "process", "processes")));
    for (const auto& [policy, number] : unread)
        add(policy, fmt::format("{} not recorded: whether they would change is not known",
                                are(number, "setting of its interrupts and queues",
                                    "settings of its interrupts and queues")));
    for (const auto& policy : by_sockets)
        add(policy, "nics: auto: which interfaces serve its processes is known once they run under it; "
                    "interrupts and lanes are left out here");
    return notes;
}

} // namespace

json plan_of(StillMachine& still) {
    const auto& policies = still.policies();
    json plan{{"balance", nullptr}};
    for (const char* key : {"actions", "problems", "policies", "processes", "queues"})
        plan[key] = json::array();
    std::set<std::string> told; // of these policies
    for (const auto& problem : still.placements().problems) {
        told.insert(problem.policy);
        plan["problems"].push_back(status::to_json(problem));
    }
    for (const auto& found : planner::check_on_machine(policies, still.machine(), {}))
        if (const std::string name(policy::policy_name(found.at.file));
            found.severity == policy::Severity::error && !told.contains(name))
            plan["problems"].push_back(status::to_json(planner::Problem{
                name, fmt::format("line {}", found.at.line), found.message, "affinityctl check"}));
    for (const auto& resolved : still.placements().policies)
        plan["policies"].push_back({{"name", resolved.policy->name},
                                    {"affinity", to_string(resolved.policy->model)},
                                    {"cpus", resolved.allowed.to_list()}});
    plan_tasks(still, plan);
    plan["notes"] = notes_of(still, plan_queues(still, plan));
    if (const auto crowdings = planner::crowdings(still.placements(), still.assignments());
        !crowdings.empty())
        plan["balance"] = status::to_json(crowdings.front());
    return plan;
}

namespace {

json plan_machine(const policy::PolicySet& policies, const Globals& globals, const PlanOptions& options) {
    return plan_of(
        *need(StillMachine::read(policies, globals.root, latencies_for(globals, options.latency))));
}

/// Crowded cores, and all that cannot be carried out.
void add_remarks(const json& plan, Document& into) {
    if (const auto balance = balance_line(plan); !balance.empty()) into.line(balance);
    std::vector<std::pair<std::string, std::string>> notes;
    for (const auto& note : list(plan, "notes"))
        notes.emplace_back(text(note, "policy"), text(note, "message"));
    for (const auto& note : about_policies(notes))
        into.line("note: " + note);
    for (const auto& problem : list(plan, "problems"))
        into.line(fmt::format("problem: policy {}: {}: {}", text_of(problem, "policy"),
                              text_of(problem, "subject"), text_of(problem, "message")));
    into.code = list(plan, "problems").empty() ? exit_ok : exit_findings;
}

/// `plan`: a status, or the plan for a still machine.
Document seats_document(const Globals& globals, const json& plan) {
    const auto topology =
        need(affinityd::topology::read_topology(need(affinityd::host::Root::open(globals.root))));
    Document document;
    document.value = {{"cpus", seats_json(occupancy_of_status(plan, Masks::wanted), topology)},
                      {"balance", member(plan, "balance")},
                      {"problems", list(plan, "problems")}};
    document.add(Document::Table{seat_fields, document.value["cpus"]});
    add_remarks(plan, document);
    return document;
}

Document plan_document(json plan) {
    Document document;
    const bool is_all_known = list(plan, "notes").empty() && list(plan, "problems").empty();
    if (!list(plan, "actions").empty())
        document.add(Document::Table{action_fields, plan["actions"]});
    else if (!is_all_known)
        document.line("nothing would change, as far as this is known");
    else if (const auto& policies = list(plan, "policies");
             !policies.empty() && list(plan, "queues").empty() &&
             std::ranges::all_of(policies, [](const json& one) { return count(one, "processes") == 0; }))
        document.line("nothing to do: no process is matched now (affinityctl check says more)");
    else
        document.line("nothing to do: everything is where it should be");
    add_remarks(plan, document);
    document.value = std::move(plan);
    return document;
}

/// The plan of policy files that are installed beside the usual ones, without that of the others.
json plan_files(const PlanOptions& options, const Globals& globals) {
    const auto preview = preview_policy_set(options.paths, globals);
    auto plan = plan_machine(preview.set, globals, options);
    for (const char* key : {"actions", "problems", "notes"}) {
        auto kept = json::array();
        for (auto& entry : plan.at(key)) {
            const auto policy = text(entry, "policy"); // "": a task that a policy keeps off its CPUs
            if (policy.empty() || std::ranges::find(preview.names, policy) != preview.names.end())
                kept.push_back(std::move(entry));
        }
        plan.at(key) = std::move(kept);
    }
    return plan;
}

Outcome run_plan(const PlanOptions& asked, const Globals& globals) {
    auto options = asked;
    if (!options.paths.empty() || options.cpus)
        need(check_is_here(globals, options.cpus ? "plan --cpus" : "plan - <FILE"));
    for (auto& path : options.paths)
        if (std::error_code code; path != "-" && !std::filesystem::exists(path, code))
            path = file_named(globals, path);
    json plan;
    if (globals.is_recorded()) {
        const auto policies = read_policy_set(options.paths, globals);
        plan = plan_machine(policies, globals, options);
    } else if (!options.paths.empty()) {
        plan = plan_files(options, globals);
    } else if (!options.latency.empty()) {
        return failed(exit_usage,
                      "--latency is for plans that no daemon makes: with --root, or with policy files");
    } else {
        plan = need(ask_daemon_object(globals, "GetPlan"));
        if (options.cpus) { // a plan has only changes: the rest is in the status
            auto status = need(ask_daemon_object(globals, "GetStatus"));
            status["problems"] = std::move(plan["problems"]);
            plan = std::move(status);
        }
    }
    return options.cpus ? seats_document(globals, plan) : plan_document(std::move(plan));
}

json explain_process(StillMachine& still, const SeenProcess& process) {
    status::ProcessExplanation value;
    value.pid = process.scan.id().tid;
    value.comm = process.scan.comm();
    const auto& policies = still.policies().policies;
    for (auto& verdict : still.consider(process)) {
        const auto& considered = policies[verdict.policy];
        if (!verdict.matched && !still.is_recorded(process, verdict.field)) verdict.found = "not recorded";
        value.considered.push_back({considered.name, considered.match_at, std::move(verdict)});
    }
    if (process.policy) {
        value.policy = policies[*process.policy].name;
        value.nics = still.nics(*process.policy);
        if (needs_sockets(policies[*process.policy]))
            value.nics_note = "nics: auto: without a daemon it is not known which interfaces serve it";
    }
    const auto* cpuset = still.cpuset(process);
    json threads = json::array();
    unsigned index = 0;
    still.plan(process, [&](const Thread& thread, const planner::ThreadPlan& plan) {
        status::ThreadExplanation one{.thread = thread, .plan = plan};
        if (cpuset != nullptr) one.cpuset = *cpuset;
        if (process.policy) {
            one.rule = planner::Matcher::thread_rule(policies[*process.policy], thread.comm, index);
            one.decided_by = status::decided_by(policies[*process.policy], one);
        }
        if (plan.target) one.reason = planner::reason_of(still.placements(), *plan.target);
        threads.push_back(status::to_json(one, value));
        ++index;
    });
    json answer = status::to_json(value);
    answer["threads"] = std::move(threads);
    return answer;
}

json explain_queue(const StillMachine& still, const planner::QueueTarget& target) {
    using State = status::QueueStatus::State;
    const auto present = still.present(target.subject);
    status::QueueStatus value;
    value.subject = target.subject;
    value.nic = target.nic;
    value.policy = target.policy;
    value.present = present.value_or(affinityd::machine::Setting{});
    value.wanted = planner::wanted_of(target, nullptr, value.present, still.placements().online);
    value.reason = target.reason;
    value.shared_with = target.shared_with;
    value.state = present == value.wanted ? State::in_place : State::not_in_place;
    if (target.rank > 0) {
        value.state = State::decided_by_other;
        value.note = "another interface on the same line decides";
    } else if (!present) {
        value.state = State::not_read;
        value.note = "its setting is not recorded";
    }
    return status::to_json(value);
}

/// Policies, and what is under them, as GetStatus has them.
json recorded_state(const StillMachine& still) {
    const auto& policies = still.policies().policies;
    json state{{"policies", json::array()}, {"processes", json::array()}, {"queues", json::array()}};
    for (const auto& policy : policies)
        state["policies"].push_back({{"name", policy.name}, {"file", policy.at.file}});
    for (const auto& process : still.processes())
        if (process.policy)
            state["processes"].push_back(
                {{"pid", process.scan.id().tid}, {"policy", policies[*process.policy].name}});
    for (const auto& target : still.placements().queues)
        if (target.off.empty()) state["queues"].push_back(explain_queue(still, target));
    return state;
}

/// Why a thread, an interface or an interrupt of a still machine would be where it would be, as Explain
/// answers it. `subject`: a PID, a TID, the name of an interface, irq:NUMBER or the label of an interrupt. An
/// Error if the machine has nothing of that name.
affinityd::Result<json> explain_recorded(StillMachine& still, const std::string& subject) {
    json queues = json::array();
    const auto* nic = still.machine().nic(subject);
    for (const auto& target : still.placements().queues) {
        const auto* irq = std::get_if<planner::IrqMask>(&target.subject);
        const bool is_irq =
            irq != nullptr && (subject == "irq:" + std::to_string(irq->irq) || subject == irq->label);
        if ((nic != nullptr && target.nic == nic->name) || is_irq)
            queues.push_back(explain_queue(still, target));
    }
    const auto line =
        subject.starts_with("irq:") ? affinityd::parse_number<unsigned>(subject.substr(4)) : std::nullopt;
    const bool is_there = nic != nullptr || (line && still.machine().irqs.find(*line) != nullptr);
    json answer{{"subject", subject}, {"queues", std::move(queues)}};
    if (const auto missing = still.missing_parts(); answer["queues"].empty() && !missing.empty())
        answer["note"] = fmt::format("not recorded: {}", fmt::join(missing, ", "));
    if (!answer["queues"].empty() || is_there) return answer;
    if (subject.starts_with("irq:"))
        return affinityd::fail("there is no interrupt of this number in the recording", subject);
    const auto tid = affinityd::parse_number<int>(subject);
    if (!tid) return affinityd::fail("neither a PID, nor an interface, irq:NUMBER, unit or policy", subject);
    // Slots are given in turn, so all are planned, in their order.
    for (const auto& process : still.processes())
        still.plan(process, [](const auto&, const auto&) {});
    const auto* process = still.process_of(*tid);
    if (process == nullptr) return affinityd::fail("the recording has no such process or thread", subject);
    return explain_process(still, *process);
}

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
            auto answer = explain_recorded(*still, subject);
            if (!answer) return failed(answer.error());
            return std::move(*answer);
        };
        return explain_all({explain, [&] { return recorded_state(*still); }, globals.root}, options);
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

Outcome documents::plan(const Globals& globals, const std::vector<std::string>& paths) {
    return run_plan({.paths = paths}, globals);
}

Document explanation(const json& answer) {
    Document document;
    add_explanation(answer, document);
    document.value = answer;
    return document;
}

void add_plan(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "plan",
                  .summary = "changes of the next pass; with files, those that they would make",
                  .example = "affinityctl plan nginx.yaml",
                  .answer = plan_answer,
                  .asks_hosts = true},
                 globals, status, run_plan);
    verb->add_option("PATH", options->paths,
                     "policy files, folders of them, or names as of try: what they would change if they were "
                     "installed now; with --root "
                     "alone, instead of the daemon's folders");
    verb->add_flag("--cpus", options->cpus, "each CPU, with all that is to sit on it");
    add_latency_option(*verb, options->latency);
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
