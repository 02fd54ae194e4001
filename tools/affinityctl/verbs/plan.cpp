// SPDX-License-Identifier: Apache-2.0
// affinityctl plan: what the daemon would change now; with --root, what a daemon that starts on the recorded
// machine would change. With --cpus: what sits on each CPU then.
#include "affinityctl/daemon/occupancy.hpp"
#include "affinityctl/offline/policy_documents.hpp"
#include "affinityctl/offline/recorded_plan.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/plan_table.hpp"
#include "affinityctl/views/seats_table.hpp"
#include "host/root.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

/// The policies that the command line names; the exit code if they have errors.
std::expected<affinityd::policy::PolicySet, int> read_policies(const std::vector<std::string>& paths) {
    std::vector<affinityd::policy::Diagnostic> findings;
    const auto documents = policy_documents(paths, findings);
    if (!documents) return std::unexpected(complain(documents.error()));
    auto read = affinityd::policy::read_policies(*documents);
    for (const auto& finding : findings)
        fmt::print(stderr, "{}\n", affinityd::policy::to_string(finding, true));
    for (const auto& finding : read.diagnostics)
        fmt::print(stderr, "{}\n", affinityd::policy::to_string(finding, true));
    if (!findings.empty() || !read.ok())
        return std::unexpected(complain({exit_findings, "the policies have errors"}));
    return std::move(read.set);
}

struct PlanOptions {
    std::vector<std::string> paths;
    bool cpus = false;
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

int ask_daemon_for_cpus(const Globals& globals) {
    const auto answer = call_daemon(globals.runtime_dir, "GetStatus");
    if (!answer) return complain(answer.error());
    const auto status = nlohmann::json::parse(*answer, nullptr, false);
    if (!status.is_object()) return complain({exit_failure, "the daemon's answer cannot be read"});
    return show_cpus(globals, status);
}

int plan_recorded(const Globals& globals, const PlanOptions& options) {
    const auto policies = read_policies(options.paths);
    if (!policies) return policies.error();
    const auto plan = plan_recording(*policies, globals.root);
    if (!plan) return complain(plan.error());
    if (options.cpus) return show_cpus(globals, *plan);
    if (globals.json)
        fmt::print("{}\n", dump(*plan, 2));
    else
        fmt::print("{}", plan_text(*plan, globals.color));
    return plan->at("problems").empty() ? exit_ok : exit_findings;
}

} // namespace

void add_plan(CLI::App& app, Globals& globals, int& status) {
    auto* verb =
        app.add_subcommand("plan", "what a full pass would change now; with --root, on a recorded machine");
    const auto options = std::make_shared<PlanOptions>();
    verb->add_option("PATH", options->paths,
                     "with --root: policy files, or folders of them (default: the daemon's folders)");
    verb->add_flag("--cpus", options->cpus, "each CPU, with all that is to sit on it");
    verb->callback([options, &globals, &status] {
        if (globals.root != "/")
            status = plan_recorded(globals, *options);
        else if (!options->paths.empty())
            status = complain(
                {exit_usage, "the daemon plans with its own policies; files may be named with --root only"});
        else if (options->cpus)
            status = ask_daemon_for_cpus(globals);
        else
            status = ask_and_show(globals, "GetPlan", {}, [&](const nlohmann::json& plan) {
                fmt::print("{}", plan_text(plan, globals.color));
            });
    });
}

} // namespace affinityctl
