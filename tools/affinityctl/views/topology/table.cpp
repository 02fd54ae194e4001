// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/table.hpp"

#include "affinityctl/views/topology/machine_load.hpp"
#include "affinityctl/views/topology/part_names.hpp"
#include "affinityctl/views/topology/text.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using affinityd::topology::Topology;

/// The position of the CPU's group in a list, "-" if no group holds it.
std::string place(const std::vector<CpuSet>& groups, unsigned cpu) {
    const auto found =
        std::ranges::find_if(groups, [cpu](const CpuSet& group) { return group.contains(cpu); });
    return found == groups.end() ? "-" : std::to_string(found - groups.begin());
}

/// A cache level of the machine, "L1d", "L1i", "L2", ... with its groups.
struct Level {
    std::string name;
    std::vector<CpuSet> groups;
};

std::vector<Level> cache_levels(const Topology& topology) {
    std::vector<Level> levels;
    for (const auto& cache : topology.caches) { // by level, then type
        const auto name = affinityd::topology::cache_name(cache);
        if (levels.empty() || levels.back().name != name) levels.push_back({name, {}});
        levels.back().groups.push_back(cache.cpus);
    }
    return levels;
}

std::string holders(const Occupancy& occupancy, const CpuLoad& load) {
    std::string text;
    for (const auto& [tenant, hold, pins, irqs] : load.claims) {
        if (pins == 0 && irqs == 0) continue;
        text += (text.empty() ? "" : ", ") + occupancy.tenants[tenant].policy;
        if (irqs > 0) text += pins > 0 ? fmt::format(" + {} IRQs", irqs) : fmt::format(" ({} IRQs)", irqs);
    }
    return text.empty() ? "-" : text;
}

struct Column {
    std::string name;
    std::function<std::string(const affinityd::topology::Cpu&)> value;
};

std::vector<Column> columns_of(const MachineView& view, const std::vector<Level>& levels) {
    const Topology& topology = view.topology;
    std::vector<Column> columns{{"CPU", [](const auto& cpu) { return std::to_string(cpu.id); }}};
    const auto add_groups = [&](const char* name, const std::vector<CpuSet>& groups) {
        if (!groups.empty())
            columns.push_back({name, [&groups](const auto& cpu) { return place(groups, cpu.id); }});
    };
    if (!topology.nodes.empty())
        columns.push_back(
            {"NODE", [](const auto& cpu) { return cpu.node ? std::to_string(*cpu.node) : "-"; }});
    add_groups("DRAWER", topology.drawers);
    add_groups("BOOK", topology.books);
    if (!topology.packages.empty())
        columns.push_back({"SOCKET", [&topology](const auto& cpu) {
                               return cpu.package ? std::to_string(*cpu.package)
                                                  : place(topology.packages, cpu.id);
                           }});
    add_groups("DIE", topology.dies);
    add_groups("CLUSTER", topology.clusters);
    columns.push_back(
        {"LLC", [groups = topology.llc_groups()](const auto& cpu) { return place(groups, cpu.id); }});
    add_groups("CORE", topology.cores);
    if (!levels.empty()) {
        std::string heading;
        for (const auto& level : levels)
            heading += (heading.empty() ? "" : ":") + level.name;
        columns.push_back({heading, [&levels](const auto& cpu) {
                               std::string text;
                               for (const auto& level : levels)
                                   text += (text.empty() ? "" : ":") + place(level.groups, cpu.id);
                               return text;
                           }});
    }
    return columns;
}

std::string marks_text(const Topology& topology, unsigned cpu) {
    std::string text;
    for (const auto& mark : cpu_marks(topology, cpu))
        text += (text.empty() ? "" : ",") + mark;
    return text.empty() ? "-" : text;
}

} // namespace

std::string table_text(const MachineView& view, bool color) {
    const Topology& topology = view.topology;
    const auto levels = cache_levels(topology);
    const auto columns = columns_of(view, levels);
    const bool has_marks = std::ranges::any_of(
        topology.cpus, [&](const auto& cpu) { return !cpu_marks(topology, cpu.id).empty(); });
    const bool has_tenants = !view.occupancy.tenants.empty();
    std::vector<std::string> heading;
    for (const auto& column : columns)
        heading.push_back(column.name);
    heading.emplace_back("ONLINE");
    if (has_marks) heading.emplace_back("WHAT");
    if (has_tenants) heading.emplace_back("HELD BY");
    auto loads = loads_of(view);
    Table table(heading);
    for (const auto& cpu : topology.cpus) {
        std::vector<std::string> row;
        for (const auto& column : columns)
            row.push_back(column.value(cpu));
        row.emplace_back("yes");
        if (has_marks) row.push_back(marks_text(topology, cpu.id));
        if (has_tenants) row.push_back(holders(view.occupancy, loads[cpu.id]));
        table.add(std::move(row));
    }
    for (const unsigned cpu : topology.offline) {
        std::vector<std::string> row(heading.size(), "-");
        row[0] = std::to_string(cpu);
        row[columns.size()] = "no";
        table.add(std::move(row));
    }
    return table.to_string(color);
}

} // namespace affinityctl
