// SPDX-License-Identifier: Apache-2.0
#include "say.hpp"
#include "table.hpp"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;

void show_policies(const json& status, bool color) {
    Table table({"POLICY", "MODEL", "CPUS", "NICS", "PROCESSES", "THREADS", "IN PLACE"});
    for (const auto& policy : status.value("policies", json::array())) {
        std::string nics;
        for (const auto& nic : policy.value("nics", json::array()))
            nics += (nics.empty() ? "" : ",") + nic.get<std::string>();
        const std::string name =
            text_of(policy, "name") + (policy.value("released", false) ? " (released)" : "");
        table.add({name, text_of(policy, "affinity"), text_of(policy, "cpus"), nics.empty() ? "-" : nics,
                   text_of(policy, "processes"), text_of(policy, "threads"),
                   text_of(policy, "threads_in_place")});
    }
    fmt::print("\n{}", table.to_string(color));
}

void show_threads(const json& status, bool color) {
    Table table({"PID", "TID", "NAME", "POLICY", "CPUS", "WANTED", "STATE"});
    for (const auto& process : status.value("processes", json::array()))
        for (const auto& thread : process.value("threads", json::array())) {
            std::string state = text_of(thread, "state");
            if (const auto outcome = text_of(thread, "outcome"); outcome != "-" && outcome != "done")
                state += ", " + outcome;
            table.add({text_of(process, "pid"), text_of(thread, "tid"), text_of(thread, "comm"),
                       text_of(process, "policy"), text_of(thread, "present"), text_of(thread, "wanted"),
                       state});
        }
    if (!table.empty()) fmt::print("\n{}", table.to_string(color));
}

void show_queues(const json& status, bool color) {
    Table table({"NIC", "WHAT", "POLICY", "NOW", "WANTED", "WHY"});
    for (const auto& queue : status.value("queues", json::array())) {
        const std::string what = text_of(queue, "kind") == "irq"
                                     ? "IRQ " + text_of(queue, "irq") + " " + text_of(queue, "label")
                                     : text_of(queue, "queue");
        table.add({text_of(queue, "nic"), what, text_of(queue, "policy"), text_of(queue, "present"),
                   text_of(queue, "wanted"),
                   queue.contains("note") ? text_of(queue, "note") : text_of(queue, "reason")});
    }
    if (!table.empty()) fmt::print("\n{}", table.to_string(color));
}

void show_troubles(const json& status) {
    for (const auto& problem : status.value("problems", json::array()))
        fmt::print("\nproblem: policy {}: {}: {}", text_of(problem, "policy"),
                   printable(text_of(problem, "subject")), text_of(problem, "message"));
    const auto refused = status.value("refused", json::object());
    for (const auto& [subject, why] : refused.items())
        fmt::print("\nrefused: {}: {}", printable(subject), why.get<std::string>());
    const auto others = status.value("claimed_by_others", json::array());
    for (const auto& other : others)
        for (const auto& subject : other.value("subjects", json::array()))
            fmt::print("\nalso claimed by the affinityd in {}: {}", printable(text_of(other, "runtime_dir")),
                       printable(subject.get<std::string>()));
    const auto writers = status.value("other_writers", json::array());
    for (const auto& writer : writers)
        fmt::print("\nalso writing here: {} ({}): {}", text_of(writer, "name"),
                   printable(text_of(writer, "where")), printable(text_of(writer, "note")));
    if (!status.value("problems", json::array()).empty() || !refused.empty() || !others.empty() ||
        !writers.empty())
        fmt::print("\n");
}

std::string figure(const json& value) {
    return value.is_number() ? fmt::format("{:.3f}", value.get<double>()) : "-";
}

/// What the traffic of each policy cost since its policies were loaded, and in the period before.
void show_costs(const json& status, bool color) {
    Table table({"POLICY", "MODEL", "NICS", "GB", "CPU S/GB", "SOFTIRQ S/GB", "CPU S/GB BEFORE"});
    for (const auto& cost : status.value("costs", json::array())) {
        std::string nics;
        for (const auto& nic : cost.value("nics", json::array()))
            nics += (nics.empty() ? "" : ",") + text_of(nic, "nic") +
                    (nic.value("shared", false) ? " (shared)" : "");
        const auto& before = cost.value("before", json());
        table.add({text_of(cost, "policy"), text_of(cost, "model"), nics,
                   fmt::format("{:.3f}", cost.value("bytes", 0.0) / 1e9),
                   figure(cost.value("cpu_seconds_per_gb", json())),
                   figure(cost.value("softirq_seconds_per_gb", json())),
                   before.is_null() ? "-"
                                    : figure(before.value("cpu_seconds_per_gb", json())) + " (" +
                                          text_of(before, "model") + ")"});
    }
    if (!table.empty()) fmt::print("\n{}", table.to_string(color));
}

void show_measurement(const json& status) {
    const auto& last = status.value("measurement", json());
    if (last.is_null()) {
        fmt::print("\nmeasurement: none yet\n");
        return;
    }
    fmt::print("\nmeasurement: {}\n",
               last.contains("summary") ? last["summary"].get<std::string>() : last.dump());
}

void show(const json& status, const Globals& globals) {
    fmt::print("affinityd {} (pid {}){}, policies loaded {}\n", text_of(status, "version"),
               text_of(status, "pid"), status.value("dry_run", false) ? ", DRY RUN" : "",
               text_of(status, "loaded_at"));
    fmt::print(
        "CPUs online {}; {} changes can be undone; {} full passes, {} events handled, {} times events lost\n",
        text_of(status, "online"), text_of(status, "journal"), text_of(status, "reconciles"),
        text_of(status, "fast_path"), text_of(status, "events_lost"));
    show_policies(status, globals.color);
    show_threads(status, globals.color);
    show_queues(status, globals.color);
    show_troubles(status);
    show_costs(status, globals.color);
    show_measurement(status);
}

} // namespace

void add_status(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand(
        "status", "what the daemon does now: policies, threads, queues, problems, the last measurement");
    verb->callback([&] {
        status = ask_and_show(globals, "GetStatus", {}, [&](const json& answer) { show(answer, globals); });
    });
}

} // namespace affinityctl
