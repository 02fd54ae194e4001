// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/status/tables.hpp"

#include "affinityctl/daemon/members.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/queue_counts.hpp"
#include "affinityctl/views/queue_words.hpp"
#include "affinityctl/views/status/findings.hpp"
#include "affinityctl/views/table.hpp"
#include "measure/percent.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

std::string figure(const json& value) {
    return value.is_number() ? fmt::format("{:.3f}", value.get<double>()) : "-";
}

std::string rows_of(const Table& table, const Page& page) {
    return table.empty() ? "" : "\n" + table.to_string(page);
}

std::string part(std::uint64_t held, std::uint64_t wanted) {
    return wanted == 0 ? "-" : fmt::format("{}/{}", held, wanted);
}

std::string model_of(const json& policy) {
    const auto model = text_of(policy, "affinity");
    if (policy.value("released", false)) return model + ", released";
    return policy.value("active", true) ? model : model + ", off";
}

/// The part of its packets that are read on the core where they arrive.
std::string local_of(const json& policy) {
    const auto core = member(member(member(policy, "local"), "same"), "core");
    return core.is_number() ? fmt::format("{:.0f} %", 100 * core.get<double>()) : "-";
}

/// What a gigabyte costs now, against what it cost under the policy before.
std::string gain_of(const json& status, const std::string& policy) {
    for (const auto& cost : list(status, "costs")) {
        if (text(cost, "policy") != policy) continue;
        const auto now = member(cost, "cpu_seconds_per_gb");
        const auto before = member(cost, "before");
        const auto then = member(before, "cpu_seconds_per_gb");
        if (!now.is_number() || !then.is_number() || then.get<double>() <= 0) break;
        return affinityd::measure::signed_percent(now.get<double>() / then.get<double>() - 1, 0) +
               " % since " + text_of(before, "model");
    }
    return "-";
}

} // namespace

std::string policy_rows(const json& status, const Page& page) {
    Table table(
        {"POLICY", "MODEL", "CPUS", "NICS", "PROCS", "THREADS", "QUEUES", "LOCAL", "PUT RIGHT", "COST"});
    const auto queues = queues_by_policy(status);
    for (const auto& policy : list(status, "policies")) {
        const auto name = text_of(policy, "name");
        const auto held = queues.contains(name) ? queues.at(name) : QueueCount{};
        table.add(
            {name, model_of(policy), text_of(policy, "cpus"), cell(joined(list(policy, "nics"), ",")),
             text_of(policy, "processes") + (text(policy, "note").starts_with("no process ") ? " (!)" : ""),
             part(count(policy, "threads_in_place"), count(policy, "threads_wanted")),
             part(held.held, held.wanted), local_of(policy), text_of(policy, "drift_put_right"),
             gain_of(status, name)});
    }
    return rows_of(table, page);
}

std::string thread_rows(const json& status, bool out_of_place, const Page& page) {
    Table table({"PID", "TID", "NAME", "POLICY", "CPUS", "WANTED", "STATE"});
    for (const auto& process : list(status, "processes"))
        for (const auto& thread : list(process, "threads")) {
            if (out_of_place && !is_out_of_place(thread)) continue;
            std::string state = text_of(thread, "state");
            if (const auto outcome = text_of(thread, "outcome"); outcome != "-" && outcome != "done")
                state += ", " + outcome;
            table.add({text_of(process, "pid"), text_of(thread, "tid"), text_of(thread, "comm"),
                       text_of(process, "policy"), text_of(thread, "present"), text_of(thread, "wanted"),
                       state});
        }
    return rows_of(table, page);
}

std::string queue_rows(const json& status, bool out_of_place, const Page& page) {
    Table table({"NIC", "WHAT", "POLICY", "NOW", "WANTED", "STATE", "WHY"});
    for (const auto& queue : list(status, "queues"))
        if (!out_of_place || is_out_of_place(queue))
            table.add({text_of(queue, "nic"), queue_name(queue), text_of(queue, "policy"),
                       text_of(queue, "present"), text_of(queue, "wanted"), text_of(queue, "state"),
                       queue_why(queue)});
    return rows_of(table, page);
}

std::string cost_rows(const json& status, const Page& page) {
    Table table({"POLICY", "MODEL", "NICS", "GB", "CPU S/GB", "SOFTIRQ S/GB", "CPU S/GB BEFORE"});
    for (const auto& cost : list(status, "costs")) {
        std::string nics;
        for (const auto& nic : list(cost, "nics"))
            nics += (nics.empty() ? "" : ",") + text_of(nic, "nic") +
                    (nic.value("shared", false) ? " (shared)" : "");
        const auto before = member(cost, "before");
        table.add({text_of(cost, "policy"), text_of(cost, "model"), nics,
                   fmt::format("{:.3f}", cost.value("bytes", 0.0) / 1e9),
                   figure(member(cost, "cpu_seconds_per_gb")), figure(member(cost, "softirq_seconds_per_gb")),
                   before.is_null() ? "-"
                                    : figure(member(before, "cpu_seconds_per_gb")) + " (" +
                                          text_of(before, "model") + ")"});
    }
    return rows_of(table, page);
}

} // namespace affinityctl
