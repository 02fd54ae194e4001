// SPDX-License-Identifier: Apache-2.0
// affinityctl plan: what the daemon would change now; with files, what these would change if they were
// installed; with --root, what a daemon that starts on the recorded machine would change. With --cpus: what
// sits on each CPU then.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/client/occupancy.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/present/document.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/latency_option.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "machine/machine.hpp"
#include "planner/balance.hpp"
#include "planner/check.hpp"
#include "policy/policy.hpp"
#include "policy/reader.hpp"
#include "status/json.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace {

using nlohmann::json;
namespace planner = affinityd::planner;
using affinityd::policy::PolicySet;

/// All that would change, and where everything under policy would be then.
struct RecordedPlan {
    json actions = json::array();
    json processes = json::array(); ///< as in a status, with policy and threads only
    json queues = json::array();
    std::map<std::string, std::size_t> unread; ///< settings that are not recorded, by policy
};

RecordedPlan outcome_of(StillMachine& still) {
    RecordedPlan outcome;
    const auto add = [&](const planner::Action& action) {
        outcome.actions.push_back(affinityd::status::to_json(action));
    };
    for (const auto& process : still.processes()) {
        json placed = json::array();
        still.plan(process, [&](const auto& thread, const planner::ThreadPlan& plan) {
            if (plan.action) add(*plan.action);
            if (plan.target)
                placed.push_back(
                    {{"tid", thread.id.tid}, {"comm", thread.comm}, {"wanted", plan.target->mask.to_list()}});
        });
        if (process.policy)
            outcome.processes.push_back({{"pid", process.scan.id().tid},
                                         {"policy", still.policies().policies[*process.policy].name},
                                         {"threads", std::move(placed)}});
    }
    for (const auto& target : still.placements().queues) {
        if (target.rank > 0) continue; // another interface on the same line decides
        const auto present = still.present(target.subject);
        if (!present) {
            ++outcome.unread[target.policy];
            continue;
        }
        if (const auto action = planner::plan_queue(still.planning(), target, *present)) add(*action);
        json queue = affinityd::status::to_json(target.subject);
        queue["policy"] = target.policy;
        queue["wanted"] = target.wanted.to_string();
        outcome.queues.push_back(std::move(queue));
    }
    return outcome;
}

/// Processes of which the recording does not say whether a policy wants them, by policy and condition.
std::map<std::pair<std::string, std::string>, std::size_t> undecided(const StillMachine& still) {
    std::map<std::pair<std::string, std::string>, std::size_t> counts;
    for (const auto& process : still.processes())
        for (const auto& verdict : still.consider(process))
            if (!verdict.matched && !still.is_recorded(process, verdict.field))
                ++counts[{still.policies().policies[verdict.policy].name, verdict.field}];
    return counts;
}

/// Notes on all that is not known from files alone.
json notes_of(const StillMachine& still, const RecordedPlan& outcome) {
    json notes = json::array();
    const auto add = [&](const std::string& policy, const std::string& message) {
        json note{{"policy", policy}, {"message", message}};
        if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
    };
    for (const auto& part : still.missing_parts())
        add("", "not recorded, and nothing is planned for them: " + part);
    for (const auto& [key, count] : undecided(still))
        add(key.first,
            fmt::format("{} of {} not recorded: whether it matches is not known", key.second,
                        affinityd::counted(count, "process", "processes") + (count == 1 ? " is" : " are")));
    for (const auto& [policy, count] : outcome.unread)
        add(policy, affinityd::counted(count, "setting") + " of its interrupts and queues" +
                        (count == 1 ? " is" : " are") +
                        " not recorded: whether they would change is not known");
    for (const auto& process : still.processes())
        if (process.policy && needs_sockets(still.policies().policies[*process.policy]))
            add(still.policies().policies[*process.policy].name,
                "nics: auto: which interfaces serve its processes is known once they run under it; "
                "interrupts and lanes are left out here");
    return notes;
}

json policies_of(const planner::Placements& placements) {
    json policies = json::array();
    for (const auto& resolved : placements.policies)
        policies.push_back({{"name", resolved.policy->name},
                            {"affinity", to_string(resolved.policy->model)},
                            {"cpus", resolved.allowed.to_list()}});
    return policies;
}

/// All that a daemon that starts on a machine, recorded or this one, would change, as GetPlan answers it, and
/// where all that is under policy would be then, as GetStatus has it ("policies", "processes", "queues").
/// Sockets are not read: which interfaces serve a process (`nics: auto`) is not known, which "notes" tell.
affinityd::Result<json> plan_recording(const PolicySet& policies, const std::string& folder,
                                       affinityd::machine::KnownLatencies latencies) {
    auto read = StillMachine::read(policies, folder, std::move(latencies));
    if (!read) return std::unexpected(read.error());
    auto& still = **read;
    json problems = json::array();
    std::set<std::string> told; // of these policies
    for (const auto& problem : still.placements().problems) {
        told.insert(problem.policy);
        problems.push_back(affinityd::status::to_json(problem));
    }
    for (const auto& found : planner::check_on_machine(policies, still.machine(), {}))
        if (const std::string name(affinityd::policy::policy_name(found.at.file));
            found.severity == affinityd::policy::Severity::error && !told.contains(name))
            problems.push_back(affinityd::status::to_json(planner::Problem{
                name, fmt::format("line {}", found.at.line), found.message, "affinityctl check"}));
    auto outcome = outcome_of(still);
    auto notes = notes_of(still, outcome);
    const auto crowdings = planner::crowdings(still.placements(), still.assignments());
    return json{
        {"actions", std::move(outcome.actions)},
        {"problems", std::move(problems)},
        {"notes", std::move(notes)},
        {"policies", policies_of(still.placements())},
        {"processes", std::move(outcome.processes)},
        {"queues", std::move(outcome.queues)},
        {"balance", crowdings.empty() ? json(nullptr) : affinityd::status::to_json(crowdings.front())}};
}

/// Crowded cores, and all that cannot be carried out. The same note on several policies is one.
void add_remarks(const json& plan, Document& into) {
    if (const auto balance = balance_line(plan); !balance.empty()) into.line(balance);
    std::vector<std::pair<std::string, std::vector<std::string>>> notes;
    for (const auto& note : list(plan, "notes")) {
        const auto message = text(note, "message");
        auto found = std::ranges::find(notes, message, [](const auto& known) { return known.first; });
        if (found == notes.end()) found = notes.insert(found, {message, {}});
        if (const auto policy = text(note, "policy"); !policy.empty()) found->second.push_back(policy);
    }
    for (const auto& [message, names] : notes)
        into.line(fmt::format("note: {}{}{}{}",
                              names.empty()       ? ""
                              : names.size() == 1 ? "policy "
                                                  : "policies ",
                              fmt::join(names, ", "), names.empty() ? "" : ": ", message));
    for (const auto& problem : list(plan, "problems"))
        into.line(fmt::format("problem: policy {}: {}: {}", text_of(problem, "policy"),
                              text_of(problem, "subject"), text_of(problem, "message")));
}

struct PlanOptions {
    std::vector<std::string> paths;
    bool cpus = false;
    std::string latency; ///< a file; "": none
};

/// `plan`: a status, or the plan for a recorded machine.
Outcome seats_document(const Globals& globals, const json& plan) {
    const auto root = affinityd::host::Root::open(globals.root);
    if (!root) return failed(root.error());
    const auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return failed(topology.error());
    Document document;
    document.value = {{"cpus", seats_json(occupancy_of_status(plan, Masks::wanted), *topology)},
                      {"balance", member(plan, "balance")},
                      {"problems", list(plan, "problems")}};
    document.add(Document::Table{seat_fields, document.value["cpus"]});
    add_remarks(plan, document);
    document.code = list(plan, "problems").empty() ? exit_ok : exit_findings;
    return document;
}

Outcome plan_document(const Globals& globals, const PlanOptions& options, json plan) {
    if (options.cpus) return seats_document(globals, plan);
    Document document;
    const bool is_all_known = list(plan, "notes").empty() && list(plan, "problems").empty();
    if (!list(plan, "actions").empty())
        document.add(Document::Table{action_fields, plan["actions"]});
    else
        document.line(is_all_known ? "nothing to do: everything is where it should be"
                                   : "nothing would change, as far as this is known");
    add_remarks(plan, document);
    document.code = list(plan, "problems").empty() ? exit_ok : exit_findings;
    document.value = std::move(plan);
    return document;
}

/// With --cpus, a plan has only changes: the rest is in the status.
Outcome plan_by_daemon(const Globals& globals, const PlanOptions& options) {
    auto plan = ask_daemon_object(globals, "GetPlan");
    if (!plan) return std::unexpected(plan.error());
    if (!options.cpus) return plan_document(globals, options, std::move(*plan));
    auto status = ask_daemon_object(globals, "GetStatus");
    if (!status) return std::unexpected(status.error());
    (*status)["problems"] = std::move((*plan)["problems"]);
    return seats_document(globals, *status);
}

Outcome plan_recorded(const Globals& globals, const PlanOptions& options) {
    const auto policies = read_policy_set(options.paths, globals);
    if (!policies) return std::unexpected(policies.error());
    auto latencies = latencies_for(globals, options.latency);
    if (!latencies) return failed(latencies.error());
    auto plan = plan_recording(*policies, globals.root, std::move(*latencies));
    if (!plan) return failed(plan.error());
    return plan_document(globals, options, std::move(*plan));
}

/// Changes on this machine if the files were installed now.
Outcome plan_files(const Globals& globals, const PlanOptions& options) {
    const auto preview = preview_policy_set(options.paths, globals);
    if (!preview) return std::unexpected(preview.error());
    auto latencies = latencies_for(globals, options.latency);
    if (!latencies) return failed(latencies.error());
    auto plan = plan_recording(preview->set, globals.root, std::move(*latencies));
    if (!plan) return failed(plan.error());
    const auto is_anothers = [&](const json& entry) {
        const auto policy = text(entry, "policy"); // "": a task that a policy keeps off its CPUs
        return !policy.empty() && std::ranges::find(preview->names, policy) == preview->names.end();
    };
    for (const char* key : {"actions", "problems", "notes"}) { // without those of installed policies
        auto kept = json::array();
        for (auto& entry : plan->at(key))
            if (!is_anothers(entry)) kept.push_back(std::move(entry));
        plan->at(key) = std::move(kept);
    }
    return plan_document(globals, options, std::move(*plan));
}

Outcome run_plan(const PlanOptions& options, const Globals& globals) {
    if (globals.is_recorded()) return plan_recorded(globals, options);
    if (!options.paths.empty()) return plan_files(globals, options);
    if (options.latency.empty()) return plan_by_daemon(globals, options);
    return failed(exit_usage,
                  "--latency is for plans that no daemon makes: with --root, or with policy files");
}

} // namespace

void add_plan(CLI::App& app, Globals& globals, int& status) {
    const auto options = std::make_shared<PlanOptions>();
    auto* verb = add_verb(app,
                          {.name = "plan",
                           .summary = "changes of the next pass; with files, those that they would make",
                           .example = "affinityctl plan nginx.yaml",
                           .answer = plan_answer},
                          globals, status, [&globals, options] { return run_plan(*options, globals); });
    verb->add_option(
        "PATH", options->paths,
        "policy files, or folders of them: what they would change if they were installed now; with --root "
        "alone, instead of the daemon's folders");
    verb->add_flag("--cpus", options->cpus, "each CPU, with all that is to sit on it");
    add_latency_option(*verb, options->latency);
}

} // namespace affinityctl
