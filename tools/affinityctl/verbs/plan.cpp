// SPDX-License-Identifier: Apache-2.0
// affinityctl plan: what the daemon would change now; with files, what these would change if they were
// installed; with --root, what a daemon that starts on the recorded machine would change. With --cpus: what
// sits on each CPU then.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/client/occupancy.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "planner/balance.hpp"
#include "planner/check.hpp"
#include "policy/policy.hpp"
#include "policy/reader.hpp"
#include "status/json.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;
namespace planner = affinityd::planner;
using affinityd::policy::PolicySet;

struct PlanOptions {
    std::vector<std::string> paths;
    bool cpus = false;
    std::string latency; ///< a file; "": none
};

/// Adds the tasks of a machine to a plan.
void plan_tasks(StillMachine& still, json& plan) {
    for (const auto& process : still.processes()) {
        json placed = json::array();
        still.plan(process, [&](const auto& thread, const planner::ThreadPlan& planned) {
            if (planned.action) plan["actions"].push_back(affinityd::status::to_json(*planned.action));
            if (planned.target)
                placed.push_back({{"tid", thread.id.tid},
                                  {"comm", thread.comm},
                                  {"wanted", planned.target->mask.to_list()}});
        });
        if (process.policy)
            plan["processes"].push_back({{"pid", process.scan.id().tid},
                                         {"policy", still.policies().policies[*process.policy].name},
                                         {"threads", std::move(placed)}});
    }
}

/// Adds interrupts and steering; returns how many settings are not recorded, by policy.
std::map<std::string, std::size_t> plan_queues(StillMachine& still, json& plan) {
    std::map<std::string, std::size_t> unread;
    for (const auto& target : still.placements().queues) {
        if (target.rank > 0) continue; // another interface on the same line decides
        const auto present = still.present(target.subject);
        if (!present) {
            ++unread[target.policy];
            continue;
        }
        if (const auto action = planner::plan_queue(still.planning(), target, *present))
            plan["actions"].push_back(affinityd::status::to_json(*action));
        plan["queues"].push_back(affinityd::status::to_json(target.subject));
        plan["queues"].back().update({{"policy", target.policy}, {"wanted", target.wanted.to_string()}});
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
        return affinityd::counted(number, one, many) + (number == 1 ? " is" : " are");
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

/// All that a daemon that starts on a machine, recorded or this one, would change, as GetPlan answers it, and
/// where all that is under policy would be then, as GetStatus has it ("policies", "processes", "queues").
/// Sockets are not read: which interfaces serve a process (`nics: auto`) is not known, which "notes" tell.
json plan_machine(const PolicySet& policies, const Globals& globals, const PlanOptions& options) {
    const auto read =
        need(StillMachine::read(policies, globals.root, latencies_for(globals, options.latency)));
    auto& still = *read;
    json plan{{"balance", nullptr}};
    for (const char* key : {"actions", "problems", "policies", "processes", "queues"})
        plan[key] = json::array();
    std::set<std::string> told; // of these policies
    for (const auto& problem : still.placements().problems) {
        told.insert(problem.policy);
        plan["problems"].push_back(affinityd::status::to_json(problem));
    }
    for (const auto& found : planner::check_on_machine(policies, still.machine(), {}))
        if (const std::string name(affinityd::policy::policy_name(found.at.file));
            found.severity == affinityd::policy::Severity::error && !told.contains(name))
            plan["problems"].push_back(affinityd::status::to_json(planner::Problem{
                name, fmt::format("line {}", found.at.line), found.message, "affinityctl check"}));
    for (const auto& resolved : still.placements().policies)
        plan["policies"].push_back({{"name", resolved.policy->name},
                                    {"affinity", to_string(resolved.policy->model)},
                                    {"cpus", resolved.allowed.to_list()}});
    plan_tasks(still, plan);
    plan["notes"] = notes_of(still, plan_queues(still, plan));
    if (const auto crowdings = planner::crowdings(still.placements(), still.assignments());
        !crowdings.empty())
        plan["balance"] = affinityd::status::to_json(crowdings.front());
    return plan;
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
    else
        document.line(is_all_known ? "nothing to do: everything is where it should be"
                                   : "nothing would change, as far as this is known");
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

Outcome run_plan(const PlanOptions& options, const Globals& globals) {
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

} // namespace

void add_plan(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "plan",
                  .summary = "changes of the next pass; with files, those that they would make",
                  .example = "affinityctl plan nginx.yaml",
                  .answer = plan_answer},
                 globals, status, run_plan);
    verb->add_option(
        "PATH", options->paths,
        "policy files, or folders of them: what they would change if they were installed now; with --root "
        "alone, instead of the daemon's folders");
    verb->add_flag("--cpus", options->cpus, "each CPU, with all that is to sit on it");
    add_latency_option(*verb, options->latency);
}

} // namespace affinityctl
