// SPDX-License-Identifier: Apache-2.0
// The machine as a tree of lines, and as a table of CPUs.
#include "affinityctl/machine/machine_view.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

using affinityd::counted;
using affinityd::CpuSet;
using affinityd::topology::Cache;
using affinityd::topology::Topology;
using PartKind = Part::Kind;
using Look = Document::Look;

std::string short_list(const CpuSet& cpus) {
    constexpr std::size_t most = 160, kept = 80;
    std::string list = cpus.to_list();
    if (list.size() <= most) return list;
    list.resize(list.rfind(',', kept) + 1);
    return list + "... (" + counted(cpus.count(), "CPU") + ")";
}

namespace {

/// "31.1 GiB", "1 MiB", "1.25 MiB".
std::string bytes_text(std::uint64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
        value /= 1024;
    std::string text = fmt::format("{:.{}f}", value, value < 10 ? 2 : 1);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
    return text + " " + units[unit];
}

/// CPUs near a device: those of its node, else the online ones of its own list.
CpuSet near_device(const Topology& topology, const std::optional<unsigned>& node, const CpuSet& local) {
    const auto* found = node ? topology.node(*node) : nullptr;
    return found != nullptr && !found->cpus.empty() ? found->cpus : local & topology.online;
}

std::string nic_detail(const affinityd::netdev::Nic& nic) {
    using affinityd::netdev::Queue;
    std::vector<std::string> words{nic.driver, nic.pci};
    const auto queues = std::ranges::count(nic.queues, affinityd::netdev::Direction::rx, &Queue::direction);
    if (queues > 0) words.push_back(counted(static_cast<std::uint64_t>(queues), "queue"));
    if (!nic.msi_irqs.empty()) words.push_back(counted(nic.msi_irqs.size(), "vector"));
    if (!nic.up && nic.operstate == "down") words.emplace_back("down");
    std::erase(words, "");
    return fmt::format("{}", fmt::join(words, ", "));
}

/// The deepest part of at most this depth that holds all of `cpus`; the machine for none.
const Part& part_holding(const Part& machine, const CpuSet& cpus, PartKind deepest) {
    const Part* best = &machine;
    for (const Part* at = &machine; at != nullptr && !cpus.empty() && at->kind != PartKind::core;) {
        const auto found = std::ranges::find_if(
            at->parts, [&](const Part& part) { return part.cpus.contains(cpus.first()); });
        at = found == at->parts.end() || !found->cpus.contains(cpus) ? nullptr : &*found;
        if (at != nullptr && at->kind <= deepest) best = at;
    }
    return *best;
}

/// A node without CPUs hangs at the nearest node that has some.
void hang_memory(const Topology& topology, const Part& machine,
                 std::map<const Part*, std::vector<Hanging>>& hanging) {
    for (const auto& node : topology.nodes) {
        if (!node.cpus.empty()) continue;
        unsigned distance = std::numeric_limits<unsigned>::max();
        CpuSet nearest;
        for (std::size_t i = 0; i < topology.nodes.size() && i < node.distance.size(); ++i)
            if (!topology.nodes[i].cpus.empty() && node.distance[i] < distance) {
                distance = node.distance[i];
                nearest = topology.nodes[i].cpus;
            }
        std::string detail = node.memory_bytes ? bytes_text(*node.memory_bytes) + ", no CPUs" : "no CPUs";
        if (!nearest.empty()) detail += fmt::format(", distance {}", distance);
        hanging[&part_holding(machine, nearest, PartKind::node)].push_back(
            {"", fmt::format("node {}", node.id), std::move(detail)});
    }
}

/// The kernel does not say that a device is near one cache of a node: it hangs at a node or a larger part.
std::map<const Part*, std::vector<Hanging>> hang_up(const MachineView& view, const Part& machine) {
    std::map<const Part*, std::vector<Hanging>> hanging;
    const auto hang = [&](const auto& node, const auto& local, Hanging line) {
        const auto near = near_device(view.topology, node, local);
        hanging[&part_holding(machine, near, PartKind::node)].push_back(std::move(line));
    };
    hang_memory(view.topology, machine, hanging);
    for (const auto& nic : view.nics)
        if (!nic.device.empty()) hang(nic.node, nic.local_cpus, {"NIC ", nic.name, nic_detail(nic)});
    for (const auto& device : view.devices)
        if (std::ranges::find(view.nics, device.address, &affinityd::netdev::Nic::pci) == view.nics.end())
            hang(device.node, device.local_cpus,
                 {"", std::string(affinityd::topology::pci_class_name(device.class_code)),
                  (device.driver.empty() ? "" : device.driver + ", ") + device.address});
    return hanging;
}

std::vector<std::string> boot_marks(const Topology& topology, unsigned cpu) {
    std::vector<std::string> marks;
    if (topology.isolated.contains(cpu)) marks.emplace_back("isolated");
    if (topology.nohz_full.contains(cpu)) marks.emplace_back("nohz_full");
    return marks;
}

} // namespace

std::vector<std::string> cpu_marks(const Topology& topology, unsigned cpu) {
    auto marks = boot_marks(topology, cpu);
    for (const auto& kind : topology.kinds)
        if (kind.cpus.contains(cpu)) marks.insert(marks.begin(), kind.name);
    return marks;
}

constexpr std::size_t most_pins = 16; // of a CPU, that its tooltip names

MachineParts::MachineParts(const MachineView& view)
    : nested(nest(view.topology)), hanging(hang_up(view, nested.machine)), topology_(view.topology) {
    for (auto& group : topology_.llc_groups())
        llcs_.emplace(std::move(group), llcs_.size());
    for (std::size_t i = 0; i < view.occupancy.tenants.size(); ++i) {
        const auto claim_of = [&](unsigned cpu) -> Claim& {
            auto& claims = loads[cpu].claims;
            if (claims.empty() || claims.back().tenant != i) claims.push_back({.tenant = i});
            return claims.back();
        };
        for (const unsigned cpu : view.occupancy.tenants[i].cpus& topology_.online)
            claim_of(cpu);
        for (const auto& pin : view.occupancy.tenants[i].pins) {
            const CpuSet cpus = pin.cpus & topology_.online;
            if (cpus.empty()) continue;
            held[&part_holding(nested.machine, cpus, PartKind::core)].push_back({i, &pin, cpus});
            const bool is_narrow = topology_.core_of(cpus.first()).contains(cpus);
            for (const unsigned cpu : cpus) {
                auto& claim = claim_of(cpu);
                claim.hold = std::max(claim.hold, is_narrow ? Hold::narrow : Hold::wide);
                ++(pin.interrupt ? claim.irqs : claim.pins);
                auto& load = loads[cpu];
                if (is_narrow) (pin.interrupt ? load.interrupts : load.tasks) += pin.tasks;
                if (load.first_pins.size() < most_pins) load.first_pins.emplace_back(i, &pin);
            }
        }
    }
}

std::string MachineParts::id_of(const Part& part) const {
    constexpr const char* words[] = {"machine", "drawer", "book",    "package", "node",
                                     "die",     "cache",  "cluster", "core",    "cpu"};
    const std::string word = words[static_cast<std::size_t>(part.kind)];
    if (part.kind == PartKind::machine) return word;
    return fmt::format("{}-{}", word,
                       part.kind == PartKind::node  ? topology_.nodes[part.index].id
                       : part.kind == PartKind::cpu ? topology_.cpus[part.index].id
                                                    : part.index);
}

std::string MachineParts::name_of(const Part& part) const {
    if (part.kind == PartKind::cache) {
        const Cache& cache = topology_.caches[part.index];
        std::string text = affinityd::topology::cache_name(cache);
        if (cache.size_bytes > 0) text += " " + bytes_text(cache.size_bytes);
        const auto found = llcs_.find(part.cpus);
        const bool is_group = cache.level >= 3 && cache.type != Cache::Type::instruction;
        return is_group && found != llcs_.end() ? fmt::format("llc {} ({})", found->second, text) : text;
    }
    auto name = part.kind == PartKind::package
                    ? fmt::format("package {}", package_number(topology_, part.index))
                    : id_of(part);
    std::ranges::replace(name, '-', ' ');
    if (part.kind == PartKind::node)
        if (const auto memory = topology_.nodes[part.index].memory_bytes)
            name += " (" + bytes_text(*memory) + ")";
    if (part.kind != PartKind::core) return name;
    const auto kind = std::ranges::find_if(topology_.kinds,
                                           [&](const auto& each) { return each.cpus.contains(part.cpus); });
    return kind == topology_.kinds.end() ? name : name + " (" + kind->name + ")";
}

std::string machine_summary(const Topology& topology) {
    std::string text =
        counted(topology.online.count(), "CPU") + ", " + counted(topology.cores.size(), "core");
    if (!topology.packages.empty()) text += ", " + counted(topology.packages.size(), "package");
    if (!topology.nodes.empty()) text += ", " + counted(topology.nodes.size(), "node");
    std::uint64_t memory = 0;
    for (const auto& node : topology.nodes)
        memory += node.memory_bytes.value_or(0);
    if (memory > 0) text += ", " + bytes_text(memory);
    return text;
}

namespace {

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

/// Cores that have all but their numbers in common.
struct AlikeCores {
    std::string caches, name_end, marks; ///< "L2 1 MiB + L1d 32 KiB", " (performance)", "isolated"
    CpuSet numbers;
    std::vector<CpuSet> cpus{}; ///< the first CPU of each core, then the second
    [[nodiscard]] bool are_like(const AlikeCores& other) const {
        return caches == other.caches && name_end == other.name_end && marks == other.marks &&
               cpus.size() == other.cpus.size();
    }
};

class Tree {
  public:
    Tree(const MachineView& view, Document& into) : view_(view), into_(into), parts_(view) {}

    void add() {
        into_.add(Document::Line{{{view_.name.empty() ? "machine" : view_.name, Look::bold},
                                  {": " + machine_summary(view_.topology)}}});
        below(parts_.nested.machine, 1);
        constexpr std::size_t most = 16;
        const auto& crossing = parts_.nested.crossing;
        for (std::size_t i = 0; i < std::min(crossing.size(), most); ++i)
            line(1, parts_.name_of(crossing[i]) + " crosses the groups above: CPUs " +
                        short_list(crossing[i].cpus));
        if (crossing.size() > most) line(1, fmt::format("and {} more cross them", crossing.size() - most));
        add_facts(view_, into_);
    }

  private:
    void line(unsigned depth, std::string text, Look look = Look::plain) {
        into_.add(Document::Line{{{std::move(text), look}}, std::string(std::size_t{2} * depth, ' ')});
    }
    /// True: the part has nothing to show but itself.
    [[nodiscard]] bool is_bare(const Part& part) const {
        return !parts_.hanging.contains(&part) && !parts_.held.contains(&part);
    }
    [[nodiscard]] bool has_one_inside(const Part& part) const {
        return part.parts.size() == 1 && part.parts[0].cpus == part.cpus && is_bare(part);
    }
    [[nodiscard]] std::string marks_of(unsigned cpu) const {
        return fmt::format("{}", fmt::join(boot_marks(view_.topology, cpu), ", "));
    }
    static std::string in_brackets(const std::string& text) { return text.empty() ? "" : " (" + text + ")"; }

    /// A core with its private caches, if its CPUs differ in nothing but their numbers.
    [[nodiscard]] std::optional<AlikeCores> plain_core(const Part& top) const {
        AlikeCores plain;
        const Part* part = &top;
        for (; part->kind != PartKind::core; part = &part->parts[0]) {
            // Caches from the third level on have numbers of their own.
            if (part->kind != PartKind::cache || view_.topology.caches[part->index].level >= 3 ||
                !has_one_inside(*part))
                return std::nullopt;
            plain.caches += parts_.name_of(*part) + " + ";
        }
        if (!is_bare(*part)) return std::nullopt;
        for (const auto& inner : part->parts) {
            auto marks = inner.kind == PartKind::cpu ? marks_of(inner.cpus.first()) : "";
            if (inner.kind != PartKind::cpu || (!plain.cpus.empty() && marks != plain.marks))
                return std::nullopt;
            plain.marks = std::move(marks);
            plain.cpus.push_back(inner.cpus);
        }
        const auto name = parts_.name_of(*part);
        plain.name_end = name.substr(std::min(name.find(" ("), name.size()));
        plain.numbers.insert(static_cast<unsigned>(part->index));
        return plain;
    }

    /// "L2 1 MiB + L1d 32 KiB + cores 0-7, 8 alike: CPUs 0-7 + 8-15"; false where these are too few. Moves
    /// `at` to the last of them.
    bool print_alike(const std::vector<Part>& parts, std::size_t& at, unsigned depth) {
        constexpr std::size_t least = 8;
        auto alike = plain_core(parts[at]);
        if (!alike) return false;
        auto next = at + 1;
        for (; next < parts.size(); ++next) {
            const auto core = plain_core(parts[next]);
            if (!core || !alike->are_like(*core)) break;
            alike->numbers |= core->numbers;
            for (std::size_t i = 0; i < core->cpus.size(); ++i)
                alike->cpus[i] |= core->cpus[i];
        }
        if (next - at < least) return false;
        std::string cpus;
        for (const auto& each : alike->cpus)
            cpus += (cpus.empty() ? "" : " + ") + short_list(each);
        line(depth,
             fmt::format("{}cores {}{}, {} alike: CPUs {}{}", alike->caches, short_list(alike->numbers),
                         alike->name_end, next - at, cpus, in_brackets(alike->marks)));
        at = next - 1;
        return true;
    }

    void print(const Part& top, unsigned depth) {
        // Nested parts with the same CPUs share a line, unless something hangs at an outer one.
        const Part* part = &top;
        std::string names = parts_.name_of(top);
        while (part->kind < PartKind::core && has_one_inside(*part)) {
            part = &part->parts[0];
            names += " + " + parts_.name_of(*part);
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
            const auto between = [](const std::string& one, const char* word, const std::string& other) {
                return one + (one.empty() || other.empty() ? "" : word) + other;
            };
            if (inner.kind != PartKind::cpu) {
                add_cpus(inner, between(caches, " + ", parts_.name_of(inner)), text);
                continue;
            }
            const unsigned cpu = inner.cpus.first();
            text += fmt::format("{}CPU {}{}", text.empty() ? "" : ", ", cpu,
                                in_brackets(between(caches, ", ", marks_of(cpu))));
        }
    }

    void below(const Part& part, unsigned depth) {
        things(part, depth);
        for (std::size_t i = 0; i < part.parts.size(); ++i)
            if (!print_alike(part.parts, i, depth) && part.parts[i].kind != PartKind::cpu)
                print(part.parts[i], depth);
    }

    void things(const Part& part, unsigned depth) {
        if (const auto found = parts_.hanging.find(&part); found != parts_.hanging.end())
            for (const auto& each : found->second)
                line(depth, each.kind + each.name + in_brackets(each.detail), Look::name);
        if (const auto found = parts_.held.find(&part); found != parts_.held.end())
            for (const auto& each : found->second)
                line(depth,
                     "> " + view_.occupancy.tenants[each.tenant].policy + ": " + each.pin->label +
                         (each.cpus == part.cpus ? "" : " on " + short_list(each.cpus)),
                     Look::held);
    }

    const MachineView& view_;
    Document& into_;
    MachineParts parts_;
};

std::string holders_of(const Occupancy& occupancy, const CpuLoad& load) {
    std::string text;
    for (const auto& [tenant, hold, pins, irqs] : load.claims) {
        if (pins == 0 && irqs == 0) continue;
        text += (text.empty() ? "" : ", ") + occupancy.tenants[tenant].policy;
        if (irqs > 0) text += pins > 0 ? fmt::format(" + {} IRQs", irqs) : fmt::format(" ({} IRQs)", irqs);
    }
    return text;
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

void add_facts(const MachineView& view, Document& into) {
    const auto& topology = view.topology;
    const std::pair<const char*, const CpuSet*> sets[] = {
        {"offline", &topology.offline}, {"isolated", &topology.isolated}, {"nohz_full", &topology.nohz_full}};
    for (const auto& [name, cpus] : sets)
        if (!cpus->empty()) into.line(fmt::format("{}: CPUs {}", name, short_list(*cpus)));
    if (topology.housekeeping != topology.online)
        into.line("housekeeping: CPUs " + short_list(topology.housekeeping));
    for (const auto& kind : topology.kinds)
        into.line(fmt::format("{} cores: CPUs {}", kind.name, short_list(kind.cpus)));
    if (const auto text = distances(topology); !text.empty()) into.verbatim(text);
    if (!view.occupancy.tenants.empty())
        into.add(Document::Line{{{"Places by policy, " + view.occupancy.source, Look::bold}, {":"}}}).gap =
            true;
    for (const auto& tenant : view.occupancy.tenants)
        into.line(fmt::format("{} (affinity {}{}): CPUs {}{}", tenant.policy, tenant.model,
                              tenant.exclusive ? ", exclusive" : "",
                              tenant.cpus.empty() ? "-" : short_list(tenant.cpus),
                              tenant.summary.empty() ? "" : "; " + tenant.summary),
                  "  ");
    for (const auto& remark : view.occupancy.remarks)
        into.line("note: " + remark, "  ");
}

void add_tree(const MachineView& view, Document& into) { Tree(view, into).add(); }

Document::Table machine_table(const MachineView& view) {
    const auto& topology = view.topology;
    std::map<std::string, std::vector<CpuSet>> groups{
        {"drawer", topology.drawers}, {"book", topology.books},       {"package", topology.packages},
        {"die", topology.dies},       {"cluster", topology.clusters}, {"llc", topology.llc_groups()},
        {"core", topology.cores}};
    for (const auto& cache : topology.caches)
        groups[affinityd::topology::cache_name(cache)].push_back(cache.cpus);
    std::map<unsigned, nlohmann::json> rows; // by CPU
    for (const auto& [name, sets] : groups)
        for (std::size_t i = 0; i < sets.size(); ++i)
            for (const unsigned cpu : sets[i])
                rows[cpu][name] = i;
    auto loads = MachineParts(view).loads;
    Document::Table table{cpu_columns};
    bool has_marks = false;
    for (const auto& cpu : topology.cpus) {
        auto row = std::move(rows[cpu.id]);
        row.update({{"cpu", cpu.id}, {"node", or_null(cpu.node)}, {"online", true}});
        if (cpu.package) row["package"] = *cpu.package;
        const auto marks = cpu_marks(topology, cpu.id);
        has_marks = has_marks || !marks.empty();
        row["marks"] = fmt::format("{}", fmt::join(marks, ","));
        row["holders"] = holders_of(view.occupancy, loads[cpu.id]);
        table.rows.push_back(std::move(row));
    }
    for (const unsigned cpu : topology.offline)
        table.rows.push_back({{"cpu", cpu}, {"online", false}});
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
    return table;
}

} // namespace affinityctl
