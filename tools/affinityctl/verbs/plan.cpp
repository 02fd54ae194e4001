// SPDX-License-Identifier: Apache-2.0
// affinityctl plan: what the daemon would change now; with files, what these would change if they were
// installed; with --root, what a daemon that starts on the recorded machine would change. With --cpus: what
// sits on each CPU then.
#include "affinityctl/daemon/occupancy.hpp"
#include "affinityctl/offline/recorded_plan.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/latency_option.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/plan_table.hpp"
#include "affinityctl/views/seats_table.hpp"
#include "host/root.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

struct PlanOptions {
    std::vector<std::string> paths;
    bool cpus = false;
    std::string latency; ///< a file; "": none
};

/// `plan`: a status, or the plan for a recorded machine.
int show_cpus(const Globals& globals, const nlohmann::json& plan) {
    const auto root = affinityd::host::Root::open(globals.root);
    if (!root) return complain(root.error());
    const auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return complain(topology.error());
    const auto occupancy = occupancy_of_status(plan, Masks::wanted);
    const auto problems = plan.value("problems", nlohmann::json::array());
    if (globals.json)
        fmt::print("{}\n", dump({{"cpus", seats_json(occupancy, *topology)},
                                 {"balance", plan.value("balance", nlohmann::json())},
                                 {"problems", problems}},
                                2));
    else
        fmt::print("{}{}", seats_text(occupancy, *topology, globals.color), plan_remarks(plan));
    return problems.empty() ? exit_ok : exit_findings;
}

int show_plan(const Globals& globals, const PlanOptions& options, const nlohmann::json& plan) {
    if (options.cpus) return show_cpus(globals, plan);
    if (globals.json)
        fmt::print("{}\n", dump(plan, 2));
    else
        fmt::print("{}", plan_text(plan, globals.color));
    return plan.at("problems").empty() ? exit_ok : exit_findings;
}

/// With --cpus, a plan says only what changes: what stays is in the status.
int plan_by_daemon(const Globals& globals, const PlanOptions& options) {
    auto plan = ask_daemon_object(globals, "GetPlan");
    if (!plan) return complain(plan.error());
    if (!options.cpus) return show_plan(globals, options, *plan);
    auto status = ask_daemon_object(globals, "GetStatus");
    if (!status) return complain(status.error());
    (*status)["problems"] = std::move((*plan)["problems"]);
    return show_cpus(globals, *status);
}

int plan_recorded(const Globals& globals, const PlanOptions& options) {
    const auto policies = read_policy_set(options.paths, globals);
    if (!policies) return policies.error();
    auto latencies = latencies_for(globals, options.latency);
    if (!latencies) return complain(latencies.error());
    const auto plan = plan_recording(*policies, globals.root, std::move(*latencies));
    return plan ? show_plan(globals, options, *plan) : complain(plan.error());
}

/// What files would change on this machine if they were installed now.
int plan_files(const Globals& globals, const PlanOptions& options) {
    const auto preview = preview_policy_set(options.paths, globals);
    if (!preview) return preview.error();
    auto latencies = latencies_for(globals, options.latency);
    if (!latencies) return complain(latencies.error());
    auto plan = plan_recording(preview->set, globals.root, std::move(*latencies));
    if (!plan) return complain(plan.error());
    const auto is_anothers = [&](const nlohmann::json& entry) {
        return std::ranges::find(preview->names, entry.value("policy", "")) == preview->names.end();
    };
    for (const char* key :
         {"actions", "problems", "notes"}) { // what is installed already is not of interest here
        auto kept = nlohmann::json::array();
        for (auto& entry : plan->at(key))
            if (!is_anothers(entry)) kept.push_back(std::move(entry));
        plan->at(key) = std::move(kept);
    }
    return show_plan(globals, options, *plan);
}

} // namespace

void add_plan(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand(
        "plan",
        "what a full pass would change now; with files, what they would; with --root, on a recorded machine");
    const auto options = std::make_shared<PlanOptions>();
    verb->add_option(
        "PATH", options->paths,
        "policy files, or folders of them: what they would change if they were installed now; with "
        "--root alone, instead of the daemon's folders");
    verb->add_flag("--cpus", options->cpus, "each CPU, with all that is to sit on it");
    add_latency_option(*verb, options->latency);
    verb->callback([options, &globals, &status] {
        if (globals.is_recorded())
            status = plan_recorded(globals, *options);
        else if (!options->paths.empty())
            status = plan_files(globals, *options);
        else if (!options->latency.empty())
            status =
                complain(CallError{exit_usage, "--latency is for plans that no daemon makes: with --root, "
                                               "or with policy files"});
        else
            status = plan_by_daemon(globals, *options);
    });
}

} // namespace affinityctl
