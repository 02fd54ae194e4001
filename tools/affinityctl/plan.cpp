// SPDX-License-Identifier: Apache-2.0
// affinityctl plan: what the daemon would change now; with --root, what one that starts on a recorded machine
// would change.
#include "documents.hpp"
#include "recorded_plan.hpp"
#include "say.hpp"
#include "table.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;

std::string subject_text(const json& action) {
    const auto kind = text_of(action, "kind");
    if (kind == "task") return "task " + text_of(action, "tid") + " (" + text_of(action, "comm") + ")";
    if (kind == "irq") return "IRQ " + text_of(action, "irq") + " (" + text_of(action, "label") + ")";
    return text_of(action, "nic") + " " + text_of(action, "queue");
}

void show(const json& plan, bool color) {
    Table table({"WHAT", "FROM", "TO", "WHY"});
    for (const auto& action : plan.value("actions", json::array()))
        table.add({subject_text(action), text_of(action, "from"), text_of(action, "to"),
                   text_of(action, "reason")});
    if (table.empty())
        fmt::print("nothing to do: everything is where it should be\n");
    else
        fmt::print("{}", table.to_string(color));
    for (const auto& problem : plan.value("problems", json::array()))
        fmt::print("problem: policy {}: {}: {}\n", text_of(problem, "policy"),
                   printable(text_of(problem, "subject")), text_of(problem, "message"));
}

/// Policies as the command line names them, read without a fault; else the exit code.
std::expected<affinityd::policy::PolicySet, int> read_policies(const std::vector<std::string>& paths) {
    std::vector<affinityd::policy::Diagnostic> findings;
    const auto documents = policy_documents(paths, findings);
    if (!documents) return std::unexpected(complain({exit_failure, documents.error().to_string()}));
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
    if (!plan) return complain({exit_failure, plan.error().to_string()});
    if (globals.json)
        fmt::print("{}\n", plan->dump(2, ' ', false, json::error_handler_t::replace));
    else
        show(*plan, globals.color);
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
            status =
                ask_and_show(globals, "GetPlan", {}, [&](const json& plan) { show(plan, globals.color); });
    });
}

} // namespace affinityctl
