// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/plan_table.hpp"

#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

std::string subject_text(const json& action) {
    const auto kind = text_of(action, "kind");
    if (kind == "task") return "task " + text_of(action, "tid") + " (" + text_of(action, "comm") + ")";
    if (kind == "irq") return "IRQ " + text_of(action, "irq") + " (" + text_of(action, "label") + ")";
    return text_of(action, "nic") + " " + text_of(action, "queue");
}

} // namespace

std::string plan_remarks(const json& plan) {
    std::string text;
    if (const auto balance = balance_line(plan); !balance.empty()) text += balance + "\n";
    for (const auto& note : plan.value("notes", json::array()))
        text +=
            fmt::format("note: {}{}\n",
                        note.value("policy", "").empty() ? "" : "policy " + text_of(note, "policy") + ": ",
                        text_of(note, "message"));
    for (const auto& problem : plan.value("problems", json::array()))
        text += fmt::format("problem: policy {}: {}: {}\n", text_of(problem, "policy"),
                            printable(text_of(problem, "subject")), text_of(problem, "message"));
    return text;
}

std::string plan_text(const json& plan, bool color) {
    Table table({"WHAT", "FROM", "TO", "WHY"});
    for (const auto& action : plan.value("actions", json::array()))
        table.add({subject_text(action), text_of(action, "from"), text_of(action, "to"),
                   text_of(action, "reason")});
    const bool is_all_known = plan.value("notes", json::array()).empty();
    const auto text = !table.empty() ? table.to_string(color)
                      : is_all_known ? "nothing to do: everything is where it should be\n"
                                     : std::string("nothing would change, as far as this is known\n");
    return text + plan_remarks(plan);
}

} // namespace affinityctl
