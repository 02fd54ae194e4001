// SPDX-License-Identifier: Apache-2.0
// affinityctl plan: what the daemon would change now; with --root, what a daemon that starts on the recorded
// machine would change.
#include "affinityctl/offline/policy_documents.hpp"
#include "affinityctl/offline/recorded_plan.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/plan_table.hpp"

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

int plan_recorded(const Globals& globals, const std::vector<std::string>& paths) {
    const auto policies = read_policies(paths);
    if (!policies) return policies.error();
    const auto plan = plan_recording(*policies, globals.root);
    if (!plan) return complain(plan.error());
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
    const auto paths = std::make_shared<std::vector<std::string>>();
    verb->add_option("PATH", *paths,
                     "with --root: policy files, or folders of them (default: the daemon's folders)");
    verb->callback([paths, &globals, &status] {
        if (globals.root != "/")
            status = plan_recorded(globals, *paths);
        else if (!paths->empty())
            status = complain(
                {exit_usage, "the daemon plans with its own policies; files may be named with --root only"});
        else
            status = ask_and_show(globals, "GetPlan", {}, [&](const nlohmann::json& plan) {
                fmt::print("{}", plan_text(plan, globals.color));
            });
    });
}

} // namespace affinityctl
