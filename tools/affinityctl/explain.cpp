// SPDX-License-Identifier: Apache-2.0
#include "say.hpp"
#include "table.hpp"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;

void show_task(const json& answer, bool color) {
    fmt::print("process {} ({})\n", text_of(answer, "pid"), printable(text_of(answer, "comm")));
    for (const auto& rule : answer.value("considered", json::array())) {
        if (rule.value("matched", false))
            fmt::print("  policy {}: matches\n", text_of(rule, "policy"));
        else
            fmt::print("  policy {}: no, {} is \"{}\" and not {}\n", text_of(rule, "policy"),
                       text_of(rule, "field"), printable(text_of(rule, "found")),
                       printable(text_of(rule, "wanted")));
    }
    if (answer.value("policy", json()).is_null()) fmt::print("  no policy wants it\n");
    if (answer.value("released", false))
        fmt::print("  its policy was told to let go (affinityctl apply takes it up again)\n");
    Table table({"TID", "NAME", "CPUS", "WANTED", "BEFORE US", "WHY"});
    for (const auto& thread : answer.value("threads", json::array()))
        table.add({text_of(thread, "tid"), text_of(thread, "comm"), text_of(thread, "present"),
                   text_of(thread, "wanted"), text_of(thread, "original"),
                   text_of(thread, thread.contains("reason") ? "reason" : "would_change")});
    fmt::print("\n{}", table.to_string(color));
}

void show_queues(const json& answer, bool color) {
    Table table({"NIC", "WHAT", "NOW", "WANTED", "BEFORE US", "POLICY", "WHY"});
    for (const auto& queue : answer.value("queues", json::array())) {
        const std::string what = text_of(queue, "kind") == "irq"
                                     ? "IRQ " + text_of(queue, "irq") + " " + text_of(queue, "label")
                                     : text_of(queue, "queue");
        table.add({text_of(queue, "nic"), what, text_of(queue, "present"), text_of(queue, "wanted"),
                   text_of(queue, "original"), text_of(queue, "policy"), text_of(queue, "reason")});
    }
    if (table.empty())
        fmt::print("no policy places the queues of {}\n", printable(text_of(answer, "subject")));
    else
        fmt::print("{}", table.to_string(color));
}

} // namespace

void add_explain(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("explain", "why a process, an interface or an interrupt is where it is");
    auto subject = std::make_shared<std::string>();
    verb->add_option("subject", *subject, "PID, TID, interface name, irq:NUMBER or the label of an interrupt")
        ->required();
    verb->callback([&globals, &status, subject] {
        status = ask_and_show(globals, "Explain", {*subject}, [&](const json& answer) {
            if (answer.contains("pid"))
                show_task(answer, globals.color);
            else
                show_queues(answer, globals.color);
        });
    });
}

} // namespace affinityctl
