// SPDX-License-Identifier: Apache-2.0
// affinityctl plan: what the daemon would change now; with files, what these would change if they were
// installed; with --root, what a daemon that starts on the recorded machine would change. With --cpus: what
// sits on each CPU then.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/client/occupancy.hpp"
#include "affinityctl/offline/still_answers.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "policy/policy.hpp"
#include "policy/reader.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

namespace policy = affinityd::policy;
using nlohmann::json;

struct PlanOptions {
    std::vector<std::string> paths;
    bool cpus = false;
    std::string latency; ///< a file; "": none
};

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
             !policies.empty() && list(plan, "queues").empty() && list(plan, "processes").empty() &&
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

} // namespace

Outcome documents::plan(const Globals& globals, const std::vector<std::string>& paths) {
    return run_plan({.paths = paths}, globals);
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

} // namespace affinityctl
