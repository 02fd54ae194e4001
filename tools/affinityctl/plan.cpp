// SPDX-License-Identifier: Apache-2.0
#include "say.hpp"
#include "table.hpp"

#include <CLI/CLI.hpp>
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
        table.add({subject_text(action), text_of(action, "from"), text_of(action, "to"), text_of(action, "reason")});
    if (table.empty()) fmt::print("nothing to do: everything is where it should be\n");
    else fmt::print("{}", table.to_string(color));
    for (const auto& problem : plan.value("problems", json::array()))
        fmt::print("problem: policy {}: {}: {}\n", text_of(problem, "policy"), printable(text_of(problem, "subject")), text_of(problem, "message"));
}

} // namespace

void add_plan(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("plan", "what a full pass would change now");
    verb->callback([&] { status = ask_and_show(globals, "GetPlan", {}, [&](const json& plan) { show(plan, globals.color); }); });
}

} // namespace affinityctl
