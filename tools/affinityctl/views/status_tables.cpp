// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/status_tables.hpp"

#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

std::string names_of(const json& list) {
    std::string names;
    for (const auto& name : list)
        names += (names.empty() ? "" : ",") + name.get<std::string>();
    return names.empty() ? "-" : names;
}

std::string figure(const json& value) {
    return value.is_number() ? fmt::format("{:.3f}", value.get<double>()) : "-";
}

} // namespace

std::string queue_why(const json& queue) {
    auto why = text_of(queue, queue.contains("note") ? "note" : "reason");
    if (queue.contains("shared_with"))
        why += " (shared with " + printable(text_of(queue, "shared_with")) + ")";
    return why;
}

std::string queue_name(const json& queue) {
    return text_of(queue, "kind") == "irq" ? "IRQ " + text_of(queue, "irq") + " " + text_of(queue, "label")
                                           : text_of(queue, "queue");
}

std::string policy_rows(const json& status, bool color) {
    Table table({"POLICY", "MODEL", "CPUS", "NICS", "PROCESSES", "THREADS", "IN PLACE"});
    for (const auto& policy : status.value("policies", json::array())) {
        const std::string name =
            text_of(policy, "name") + (policy.value("released", false) ? " (released)" : "");
        table.add({name, text_of(policy, "affinity"), text_of(policy, "cpus"),
                   names_of(policy.value("nics", json::array())), text_of(policy, "processes"),
                   text_of(policy, "threads"), text_of(policy, "threads_in_place")});
    }
    return "\n" + table.to_string(color);
}

std::string thread_rows(const json& status, bool color) {
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
    return table.empty() ? "" : "\n" + table.to_string(color);
}

std::string queue_rows(const json& status, bool color) {
    Table table({"NIC", "WHAT", "POLICY", "NOW", "WANTED", "WHY"});
    for (const auto& queue : status.value("queues", json::array())) {
        table.add({text_of(queue, "nic"), queue_name(queue), text_of(queue, "policy"),
                   text_of(queue, "present"), text_of(queue, "wanted"), queue_why(queue)});
    }
    return table.empty() ? "" : "\n" + table.to_string(color);
}

std::string cost_rows(const json& status, bool color) {
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
    return table.empty() ? "" : "\n" + table.to_string(color);
}

} // namespace affinityctl
