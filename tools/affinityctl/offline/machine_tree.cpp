// SPDX-License-Identifier: Apache-2.0
// The machine as a tree of lines, and as a table of CPUs.
#include "affinityctl/offline/machine_view.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace {

using affinityd::counted;
using affinityd::CpuSet;
using affinityd::topology::Topology;
using PartKind = Part::Kind;
using Look = Document::Look;

std::string distances(const Topology& topology) {
    const auto& nodes = topology.nodes;
    if (nodes.size() < 2 ||
        std::ranges::any_of(nodes, [](const auto& node) { return node.distance.empty(); }))
        return {};
    constexpr std::size_t most = 64; // a wider table is of no use
    if (nodes.size() > most) {
        unsigned farthest = 0;
        for (const auto& node : nodes)
            farthest = std::max(farthest, std::ranges::max(node.distance));
        return fmt::format("node distances: {} at most, between {}\n", farthest,
                           counted(nodes.size(), "node"));
    }
    std::string text = "node distances:\n     ";
    for (const auto& node : nodes)
        text += fmt::format("{:>5}", node.id);
    for (const auto& node : nodes) {
        text += fmt::format("\n{:>5}", node.id);
        for (const unsigned distance : node.distance)
            text += fmt::format("{:>5}", distance);
    }
    return text + "\n";
}

/// Facts without a place in a tree: offline and isolated CPUs, kinds of cores, distances between nodes.
void add_facts(const Topology& topology, Document& into) {
    const std::pair<const char*, const CpuSet*> sets[] = {
        {"offline", &topology.offline}, {"isolated", &topology.isolated}, {"nohz_full", &topology.nohz_full}};
    for (const auto& [name, cpus] : sets)
        if (!cpus->empty()) into.line(fmt::format("{}: CPUs {}", name, short_list(*cpus)));
    if (topology.housekeeping != topology.online)
        into.line("housekeeping: CPUs " + short_list(topology.housekeeping));
    for (const auto& kind : topology.kinds)
        into.line(fmt::format("{} cores: CPUs {}", kind.name, short_list(kind.cpus)));
    if (const auto text = distances(topology); !text.empty()) into.verbatim(text);
}

/// Holdings of each policy, one line each.
void add_tenants(const Occupancy& occupancy, Document& into) {
    if (!occupancy.tenants.empty())
        into.add(Document::Line{{{"Places by policy, " + occupancy.source, Look::bold}, {":"}}}).gap = true;
    for (const auto& tenant : occupancy.tenants)
        into.line(fmt::format("{} (affinity {}{}): CPUs {}{}", tenant.policy, tenant.model,
                              tenant.exclusive ? ", exclusive" : "",
                              tenant.cpus.empty() ? "-" : short_list(tenant.cpus),
                              tenant.summary.empty() ? "" : "; " + tenant.summary),
                  "  ");
    for (const auto& remark : occupancy.remarks)
        into.line("note: " + remark, "  ");
}

/// A core with caches of its own and CPUs that differ in nothing but their numbers.
struct PlainCore {
    std::string caches; ///< "L2 1 MiB + L1d 32 KiB"
    std::string kind;   ///< "performance"; "" where all cores are alike
    std::string marks;  ///< "isolated"; of each of its CPUs
    std::size_t number = 0;
    std::vector<unsigned> cpus;
};

/// Adds the CPUs of a core to what is known of it; false if they differ in more than their numbers.
bool add_cpus(PlainCore& plain, const Part& core, const Topology& topology) {
    for (const auto& inner : core.parts) {
        if (inner.kind != PartKind::cpu) return false;
        const unsigned cpu = inner.cpus.first();
        auto marks = fmt::format("{}", fmt::join(boot_marks(topology, cpu), ", "));
        if (!plain.cpus.empty() && marks != plain.marks) return false;
        plain.marks = std::move(marks);
        plain.cpus.push_back(cpu);
    }
    return true;
}

std::optional<PlainCore> plain_core(const Part& top, const PartNames& names, const Topology& topology,
                                    const std::function<bool(const Part&)>& is_bare) {
    PlainCore plain;
    const Part* part = &top;
    for (; part->kind != PartKind::core && is_bare(*part); part = &part->parts[0]) {
        // Caches from the third level on have numbers of their own.
        const bool is_private = part->kind == PartKind::cache && topology.caches[part->index].level < 3 &&
                                part->parts.size() == 1 && part->parts[0].cpus == part->cpus;
        if (!is_private) return std::nullopt;
        plain.caches += (plain.caches.empty() ? "" : " + ") + names.of(*part);
    }
    if (!is_bare(*part) || !add_cpus(plain, *part, topology)) return std::nullopt;
    plain.kind = names.kind_of(*part);
    plain.number = part->index;
    return plain;
}

bool are_alike(const PlainCore& a, const PlainCore& b) {
    return a.caches == b.caches && a.kind == b.kind && a.marks == b.marks && a.cpus.size() == b.cpus.size();
}

/// The cores at the front of `parts`, from the position `from` on, that have all but their numbers in common.
/// `is_bare` says whether a part has nothing to show but itself.
std::vector<PlainCore> alike_cores(const std::vector<Part>& parts, std::size_t from, const PartNames& names,
                                   const Topology& topology,
                                   const std::function<bool(const Part&)>& is_bare) {
    std::vector<PlainCore> alike;
    for (; from < parts.size(); ++from) {
        auto core = plain_core(parts[from], names, topology, is_bare);
        if (!core || (!alike.empty() && !are_alike(alike[0], *core))) break;
        alike.push_back(std::move(*core));
    }
    return alike;
}

/// "L2 1 MiB + L1d 32 KiB + cores 0-7, 8 alike: CPUs 0-7 + 8-15": the first CPU of each core, then the
/// second.
std::string alike_text(const std::vector<PlainCore>& cores) {
    CpuSet numbers;
    std::vector<CpuSet> threads(cores[0].cpus.size());
    for (const auto& core : cores) {
        numbers.insert(static_cast<unsigned>(core.number));
        for (std::size_t i = 0; i < core.cpus.size(); ++i)
            threads[i].insert(core.cpus[i]);
    }
    std::string text = cores[0].caches + (cores[0].caches.empty() ? "" : " + ") + "cores " +
                       short_list(numbers) + (cores[0].kind.empty() ? "" : " (" + cores[0].kind + ")") +
                       fmt::format(", {} alike: CPUs ", cores.size());
    for (std::size_t i = 0; i < threads.size(); ++i)
        text += (i == 0 ? "" : " + ") + short_list(threads[i]);
    return text;
}

struct Held {
    std::string text;
    CpuSet cpus;
    bool whole = false; ///< all CPUs of the part
};

class Tree {
  public:
    Tree(const MachineView& view, Document& into)
        : view_(view), into_(into), names_(view.topology), nested_(nest(view.topology)),
          hanging_(hang_up(view, nested_.machine)) {
        const PartSearch search(nested_.machine);
        for (const auto& tenant : view.occupancy.tenants)
            for (const auto& pin : tenant.pins) {
                const CpuSet cpus = pin.cpus & view.topology.online;
                if (cpus.empty()) continue;
                const Part& part = search.smallest_holding(cpus);
                held_[&part].push_back({tenant.policy + ": " + pin.label, cpus, cpus == part.cpus});
            }
    }

    void add() {
        into_.add(Document::Line{{{view_.name.empty() ? "machine" : view_.name, Look::bold},
                                  {": " + machine_summary(view_.topology)}}});
        below(nested_.machine, 1);
        crossing();
        add_facts(view_.topology, into_);
        add_tenants(view_.occupancy, into_);
    }

  private:
    void line(unsigned depth, std::string text, Look look = Look::plain) {
        into_.add(Document::Line{{{std::move(text), look}}, std::string(std::size_t{2} * depth, ' ')});
    }
    [[nodiscard]] bool is_bare(const Part& part) const {
        return !hanging_.contains(&part) && !held_.contains(&part);
    }

    [[nodiscard]] static std::string marked(const std::string& marks) {
        return marks.empty() ? "" : " (" + marks + ")";
    }

    [[nodiscard]] std::string cpu_text(unsigned cpu, const std::string& caches) const {
        std::string special = caches;
        for (const auto& mark : boot_marks(view_.topology, cpu))
            special += (special.empty() ? "" : ", ") + mark;
        return fmt::format("CPU {}", cpu) + marked(special);
    }

    [[nodiscard]] std::string core_name(const Part& core) const {
        const auto kind = names_.kind_of(core);
        return names_.of(core) + (kind.empty() ? "" : " (" + kind + ")");
    }

    void crossing() {
        constexpr std::size_t most = 16;
        const auto& parts = nested_.crossing;
        for (std::size_t i = 0; i < std::min(parts.size(), most); ++i)
            line(1, names_.of(parts[i]) + " crosses the groups above: CPUs " + short_list(parts[i].cpus));
        if (parts.size() > most) line(1, fmt::format("and {} more cross them", parts.size() - most));
    }

    void print(const Part& top, unsigned depth) {
        // Nested parts with the same CPUs share a line, unless something hangs at an outer one.
        const Part* part = &top;
        std::string names;
        while (true) {
            names += (names.empty() ? "" : " + ") +
                     (part->kind == PartKind::core ? core_name(*part) : names_.of(*part));
            const bool goes_on = part->kind < PartKind::core && part->parts.size() == 1 &&
                                 part->parts[0].cpus == part->cpus && is_bare(*part);
            if (!goes_on) break;
            part = &part->parts[0];
        }
        if (part->kind != PartKind::core) {
            line(depth, names + ": CPUs " + short_list(part->cpus));
            below(*part, depth + 1);
            return;
        }
        std::string cpus;
        add_cpus(*part, "", cpus);
        line(depth, names + ": " + cpus);
        things(*part, depth + 1);
    }

    /// With the caches that a CPU has to itself inside the core, as in the modules of old Opterons.
    void add_cpus(const Part& part, const std::string& caches, std::string& text) const {
        for (const auto& inner : part.parts) {
            if (inner.kind == PartKind::cpu)
                text += (text.empty() ? "" : ", ") + cpu_text(inner.cpus.first(), caches);
            else
                add_cpus(inner, caches + (caches.empty() ? "" : " + ") + names_.of(inner), text);
        }
    }

    void below(const Part& part, unsigned depth) {
        things(part, depth);
        constexpr std::size_t least_alike = 8;
        for (std::size_t i = 0; i < part.parts.size(); ++i) {
            const auto alike = alike_cores(part.parts, i, names_, view_.topology,
                                           [this](const Part& each) { return is_bare(each); });
            if (alike.size() >= least_alike) {
                line(depth, alike_text(alike) + marked(alike[0].marks));
                i += alike.size() - 1;
            } else if (part.parts[i].kind != PartKind::cpu) {
                print(part.parts[i], depth);
            }
        }
    }

    void things(const Part& part, unsigned depth) {
        if (const auto found = hanging_.find(&part); found != hanging_.end())
            for (const auto& each : found->second) {
                const std::string name = each.kind == Hanging::Kind::nic ? "NIC " + each.name : each.name;
                line(depth, name + (each.detail.empty() ? "" : " (" + each.detail + ")"), Look::name);
            }
        if (const auto found = held_.find(&part); found != held_.end())
            for (const auto& each : found->second)
                line(depth, "> " + each.text + (each.whole ? "" : " on " + short_list(each.cpus)),
                     Look::held);
    }

    const MachineView& view_;
    Document& into_;
    PartNames names_;
    affinityd::topology::PartTree nested_;
    HangingByPart hanging_;
    std::map<const Part*, std::vector<Held>> held_;
};

/// The position of the CPU's group in a list, "-" if no group holds it.
std::string place_in(const std::vector<CpuSet>& groups, unsigned cpu) {
    const auto found =
        std::ranges::find_if(groups, [cpu](const CpuSet& group) { return group.contains(cpu); });
    return found == groups.end() ? "-" : std::to_string(found - groups.begin());
}

std::string holders_of(const Occupancy& occupancy, const CpuLoad& load) {
    std::string text;
    for (const auto& [tenant, hold, pins, irqs] : load.claims) {
        if (pins == 0 && irqs == 0) continue;
        text += (text.empty() ? "" : ", ") + occupancy.tenants[tenant].policy;
        if (irqs > 0) text += pins > 0 ? fmt::format(" + {} IRQs", irqs) : fmt::format(" ({} IRQs)", irqs);
    }
    return text.empty() ? "-" : text;
}

constexpr Field cpu_columns[] = {
    {"cpu", "CPU", "count", ""},         {"node", "NODE", "count", ""},
    {"drawer", "DRAWER", "count", ""},   {"book", "BOOK", "count", ""},
    {"package", "SOCKET", "count", ""},  {"die", "DIE", "count", ""},
    {"cluster", "CLUSTER", "count", ""}, {"llc", "LLC", "count", ""},
    {"core", "CORE", "count", ""},       {"L1d", "L1D", "count", ""},
    {"L1i", "L1I", "count", ""},         {"L1", "L1", "count", ""},
    {"L2", "L2", "count", ""},           {"L3", "L3", "count", ""},
    {"L4", "L4", "count", ""},           {"online", "ONLINE", "flag", ""},
    {"marks", "WHAT", "text", ""},       {"holders", "HELD BY", "text", ""},
};

} // namespace

void add_tree(const MachineView& view, Document& into) { Tree(view, into).add(); }

Document::Table machine_table(const MachineView& view) {
    const auto& topology = view.topology;
    std::map<std::string, std::vector<CpuSet>> groups{
        {"drawer", topology.drawers}, {"book", topology.books},       {"package", topology.packages},
        {"die", topology.dies},       {"cluster", topology.clusters}, {"llc", topology.llc_groups()},
        {"core", topology.cores}};
    for (const auto& cache : topology.caches)
        groups[affinityd::topology::cache_name(cache)].push_back(cache.cpus);
    const bool has_marks = std::ranges::any_of(
        topology.cpus, [&](const auto& cpu) { return !cpu_marks(topology, cpu.id).empty(); });
    Document::Table table{cpu_columns};
    for (const auto& column : cpu_columns) {
        const std::string key = column.key;
        const auto found = groups.find(key);
        const bool is_there = found != groups.end() ? !found->second.empty() || key == "llc"
                              : key == "node"       ? !topology.nodes.empty()
                              : key == "marks"      ? has_marks
                              : key == "holders"    ? !view.occupancy.tenants.empty()
                                                    : key == "cpu" || key == "online";
        if (is_there) table.columns.emplace_back(column.heading);
    }
    auto loads = loads_of(view);
    for (const auto& cpu : topology.cpus) {
        nlohmann::json row{{"cpu", cpu.id}, {"node", or_null(cpu.node)}, {"online", true}};
        for (const auto& [name, sets] : groups)
            row[name] = place_in(sets, cpu.id);
        if (cpu.package) row["package"] = *cpu.package;
        row["marks"] = fmt::format("{}", fmt::join(cpu_marks(topology, cpu.id), ","));
        row["holders"] = holders_of(view.occupancy, loads[cpu.id]);
        table.rows.push_back(std::move(row));
    }
    for (const unsigned cpu : topology.offline)
        table.rows.push_back({{"cpu", cpu}, {"online", false}});
    return table;
}

} // namespace affinityctl
