// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/seats_table.hpp"

#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

using affinityd::topology::Topology;

constexpr std::size_t most_named = 6; ///< of one policy on one CPU

/// What sits on a CPU.
struct Seats {
    double tasks = 0;
    unsigned interrupts = 0;
    struct Seat {
        const Tenant* tenant;
        const Pin* pin;
    };
    std::vector<Seat> seats;
};

Seats seats_on(const Occupancy& occupancy, unsigned cpu) {
    Seats found;
    for (const auto& tenant : occupancy.tenants)
        for (const auto& pin : tenant.pins) {
            if (!pin.cpus.contains(cpu)) continue;
            found.seats.push_back({&tenant, &pin});
            if (pin.interrupt)
                ++found.interrupts;
            else
                found.tasks += static_cast<double>(pin.tasks) / static_cast<double>(pin.cpus.count());
        }
    return found;
}

double rounded(double tasks) { return std::round(tasks * 100) / 100; }

std::string holders_of(const Seats& seats) {
    std::string text;
    const Tenant* last = nullptr;
    std::size_t named = 0, left_out = 0;
    const auto finish = [&] {
        if (left_out > 0) text += fmt::format(" and {} more", left_out);
        named = left_out = 0;
    };
    for (const auto& [tenant, pin] : seats.seats) {
        const bool is_first = tenant != last;
        if (is_first) {
            finish();
            text += (text.empty() ? "" : "; ") + printable(tenant->policy) + ": ";
            last = tenant;
        }
        if (named++ == most_named) {
            --named;
            ++left_out;
            continue;
        }
        text += (is_first ? "" : ", ") + printable(pin->label);
        if (pin->cpus.count() > 1) text += " on " + pin->cpus.to_list();
    }
    finish();
    return text.empty() ? "-" : text;
}

} // namespace

std::string seats_text(const Occupancy& occupancy, const Topology& topology, bool color) {
    Table table({"CPU", "NODE", "TASKS", "INTERRUPTS", "WHAT"});
    for (const auto& cpu : topology.cpus) {
        const auto seats = seats_on(occupancy, cpu.id);
        table.add({std::to_string(cpu.id), cpu.node ? std::to_string(*cpu.node) : "-",
                   fmt::format("{}", rounded(seats.tasks)), std::to_string(seats.interrupts),
                   holders_of(seats)});
    }
    return table.to_string(color);
}

json seats_json(const Occupancy& occupancy, const Topology& topology) {
    json list = json::array();
    for (const auto& cpu : topology.cpus) {
        const auto seats = seats_on(occupancy, cpu.id);
        json holds = json::array();
        for (const auto& [tenant, pin] : seats.seats)
            holds.push_back(
                {{"policy", tenant->policy}, {"what", printable(pin->label)}, {"cpus", pin->cpus.to_list()}});
        list.push_back({{"cpu", cpu.id},
                        {"node", cpu.node ? json(*cpu.node) : json(nullptr)},
                        {"tasks", rounded(seats.tasks)},
                        {"interrupts", seats.interrupts},
                        {"holds", std::move(holds)}});
    }
    return list;
}

} // namespace affinityctl
