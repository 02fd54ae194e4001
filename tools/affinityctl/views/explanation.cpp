// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/explanation.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/history_points.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/queues.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

/// How local its reads are, and where its packets come from.
std::string local_text(const json& answer) {
    const auto local = answer.value("local", json::object());
    if (local.empty()) return {};
    const auto core = [&](const char* key) {
        return 100 * number_of(local.value(key, json::object()), "core");
    };
    const double samples = number_of(local, "samples");
    auto text = fmt::format(
        "  packets: {:.0f} % are read on the core where they arrive, {:.0f} % would be by chance ({})\n",
        core("same"), core("chance"), counted(static_cast<std::size_t>(samples), "read"));
    for (const auto& place : answer.value("arrivals", json::array()))
        text += fmt::format("    {:3.0f} % arrive on CPU {}: {}\n",
                            100 * number_of(place, "samples") / std::max(samples, 1.0), text_of(place, "cpu"),
                            printable(joined(place.value("sources", json::array()), "; ")));
    return text;
}

/// Those of IPv4 and IPv6 on one port are told of in one line.
std::string listeners_text(const json& answer) {
    std::map<std::array<std::string, 4>, std::size_t> alike; // by port, CPU, thread, protocol
    for (const auto& listener : answer.value("listeners", json::array()))
        ++alike[{text_of(listener, "port"), text_of(listener, "cpu"), text_of(listener, "thread"),
                 listener.value("protocol", "tcp")}];
    std::string text;
    for (const auto& [where, count] : alike) {
        const auto& [port, cpu, thread, protocol] = where;
        const bool is_udp = protocol == "udp";
        text += fmt::format("  {} of port {} for thread {}: {} that arrive on CPU {}\n",
                            counted(count, is_udp ? "UDP socket" : "listener"), port, thread,
                            is_udp ? "datagrams" : "connections", cpu);
    }
    for (const auto& [key, name] :
         {std::pair{"handed", "connections"}, std::pair{"handed_datagrams", "datagrams"}})
        if (const auto handed = answer.value(key, json()); handed.is_object())
            text += fmt::format("  {} in its network namespace so far: {} to the worker of their lane, {} to "
                                "another (full queues passed over: {}), {} as the kernel chose\n",
                                name, text_of(handed, "to_lane"), text_of(handed, "to_next"),
                                text_of(handed, "full"), text_of(handed, "to_kernel"));
    return text;
}

std::string task_text(const json& answer, bool color) {
    std::string text =
        fmt::format("process {} ({})\n", text_of(answer, "pid"), printable(text_of(answer, "comm")));
    for (const auto& rule : answer.value("considered", json::array())) {
        if (rule.value("matched", false))
            text += fmt::format("  policy {}: matches", text_of(rule, "policy"));
        else if (text_of(rule, "found") == "not recorded")
            text += fmt::format("  policy {}: not known, {} is not recorded", text_of(rule, "policy"),
                                text_of(rule, "field"));
        else
            text += fmt::format("  policy {}: no, {} is \"{}\" and not {}", text_of(rule, "policy"),
                                text_of(rule, "field"), printable(text_of(rule, "found")),
                                printable(text_of(rule, "wanted")));
        text += rule.contains("at") ? fmt::format(" ({})\n", printable(text_of(rule, "at"))) : "\n";
    }
    if (answer.contains("kept_off"))
        text += "  " + printable(text_of(answer, "kept_off")) + "\n";
    else if (answer.value("policy", json()).is_null())
        text += "  no policy wants it\n";
    if (answer.contains("nics_note")) text += "  " + printable(text_of(answer, "nics_note")) + "\n";
    text += listeners_text(answer);
    text += local_text(answer);
    for (const auto& group : answer.value("at_arrivals", json::array()))
        text += fmt::format("  {}: {}\n", counted(group.value("tasks", std::size_t{0}), "task"),
                            printable(text_of(group, "why")));
    for (const auto& group : answer.value("not_steered", json::array()))
        text += fmt::format("  {} not steered: {}\n",
                            counted(group.value("listeners", std::size_t{0}), "listener is", "listeners are"),
                            printable(text_of(group, "why")));
    if (answer.contains("pinned")) text += "  " + printable(text_of(answer, "pinned")) + "\n";
    if (answer.value("released", false)) text += "  released by hand (affinityctl apply takes it up again)\n";
    Table table({"TID", "NAME", "CPUS", "WANTED", "BEFORE US", "WHY"});
    for (const auto& thread : answer.value("threads", json::array())) {
        std::string why = text_of(thread, thread.contains("reason") ? "reason" : "would_change");
        if (thread.contains("decided_by")) why += " (" + printable(text_of(thread, "decided_by")) + ")";
        table.add({text_of(thread, "tid"), text_of(thread, "comm"), text_of(thread, "present"),
                   text_of(thread, "wanted"), text_of(thread, "original"), std::move(why)});
    }
    return text + "\n" + table.to_string(color);
}

std::string queues_text(const json& answer, bool color) {
    Table table({"NIC", "WHAT", "NOW", "WANTED", "BEFORE US", "POLICY", "WHY"});
    for (const auto& queue : answer.value("queues", json::array())) {
        table.add({text_of(queue, "nic"), queue_name(queue), text_of(queue, "present"),
                   text_of(queue, "wanted"), text_of(queue, "original"), text_of(queue, "policy"),
                   queue_why(queue)});
    }
    if (answer.contains("note"))
        return printable(text_of(answer, "subject")) + ": " + printable(text_of(answer, "note")) + "\n";
    if (table.empty())
        return "no policy places the interrupts of " + printable(text_of(answer, "subject")) + "\n";
    return table.to_string(color);
}

/// What a policy or a unit stands for, one after the other.
std::string parts_text(const json& answer, bool color) {
    const auto& parts = answer["explanations"];
    const auto name = printable(text_of(answer, "subject"));
    const bool is_policy = answer.contains("of_policy");
    std::string text =
        is_policy ? fmt::format("policy {} ({})\n", name, printable(text_of(answer["of_policy"], "file")))
                  : fmt::format("unit {}\n", name);
    if (is_policy && answer["of_policy"].value("released", false))
        text += "  released by hand (affinityctl apply takes it up again)\n";
    else if (parts.empty())
        text += is_policy ? "  it holds nothing now\n" : "  its processes have ended\n";
    for (const auto& part : parts)
        text += "\n" + explanation_text(part, color);
    return text;
}

} // namespace

std::string explanation_text(const json& answer, bool color) {
    if (answer.contains("explanations")) return parts_text(answer, color);
    return answer.contains("pid") ? task_text(answer, color) : queues_text(answer, color);
}

} // namespace affinityctl
