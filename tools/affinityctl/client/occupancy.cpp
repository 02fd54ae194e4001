// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/client/occupancy.hpp"

#include "affinityctl/client/answers.hpp"
#include "affinityctl/present/document.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::counted;
using affinityd::CpuSet;
using nlohmann::json;

Occupancy occupancy_of_status(const json& status, Masks masks) {
    const char* mask_of = masks == Masks::present ? "present" : "wanted";
    Occupancy occupancy;
    occupancy.source = "as the daemon has it";
    for (const auto& each : list(status, "policies"))
        if (member(each, "released") != true)
            occupancy.tenants.push_back(
                {.policy = text(each, "name"),
                 .model = text(each, "affinity"),
                 .cpus = cpus(each, "cpus"),
                 .exclusive = false,
                 .pins = {},
                 .summary = counted(count(each, "processes"), "process", "processes") + ", " +
                            counted(count(each, "threads"), "thread")});
    const auto pin = [&](const std::string& policy, Pin what) {
        const auto owner = std::ranges::find(occupancy.tenants, policy, &Tenant::policy);
        if (owner != occupancy.tenants.end() && !what.cpus.empty()) owner->pins.push_back(std::move(what));
    };
    // Threads of one policy with the same name and mask make one pin.
    std::map<std::tuple<std::string, std::string, CpuSet>, unsigned> groups;
    for (const auto& process : list(status, "processes"))
        for (const auto& thread : list(process, "threads"))
            ++groups[{text(process, "policy"), text(thread, "comm"), cpus(thread, mask_of)}];
    for (const auto& [key, number] : groups) {
        const auto& [policy, comm, mask] = key;
        pin(policy, {number == 1 ? comm : fmt::format("{}, {} threads", comm, number), mask, false, number});
    }
    for (const auto& queue : list(status, "queues"))
        if (text(queue, "kind") == "irq" && !queue.value("kept_off", false))
            pin(text(queue, "policy"), {fmt::format("{} (IRQ {})", text(queue, "label"), count(queue, "irq")),
                                        cpus(queue, mask_of), true});
    for (const auto& problem : list(status, "problems")) {
        if (text(problem, "policy").empty()) continue; // the daemon's own, which `status` tells
        occupancy.remarks.push_back(fmt::format("{}: {}: {}", text(problem, "policy"),
                                                text(problem, "subject"), text(problem, "message")));
    }
    return occupancy;
}

json seats_json(const Occupancy& occupancy, const affinityd::topology::Topology& topology) {
    json list = json::array();
    for (const auto& cpu : topology.cpus) {
        double tasks = 0;
        unsigned interrupts = 0;
        json holds = json::array();
        for (const auto& tenant : occupancy.tenants)
            for (const auto& pin : tenant.pins) {
                if (!pin.cpus.contains(cpu.id)) continue;
                holds.push_back(
                    {{"policy", tenant.policy}, {"what", pin.label}, {"cpus", pin.cpus.to_list()}});
                if (pin.interrupt)
                    ++interrupts;
                else
                    tasks += static_cast<double>(pin.tasks) / static_cast<double>(pin.cpus.count());
            }
        list.push_back(record(seat_fields, {cpu.id, or_null(cpu.node), std::round(tasks * 100) / 100,
                                            interrupts, std::move(holds)}));
    }
    return list;
}

} // namespace affinityctl
