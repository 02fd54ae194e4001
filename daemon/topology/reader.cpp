// SPDX-License-Identifier: Apache-2.0
#include "topology/reader.hpp"

#include "base/text.hpp"
#include "host/root.hpp"
#include "topology/kinds.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace affinityd::topology {

namespace {

using host::Dir;
using host::Root;

std::vector<unsigned> numbered(const Dir& dir, const std::string& folder, std::string_view prefix) {
    std::vector<unsigned> numbers;
    for (const auto& name : dir.list(folder)) {
        if (!name.starts_with(prefix)) continue;
        const auto number = parse_number<unsigned>(std::string_view(name).substr(prefix.size()));
        if (number && *number <= CpuSet::max_cpu) numbers.push_back(*number);
    }
    std::ranges::sort(numbers);
    return numbers;
}

std::optional<int> id_of(const Dir& dir, const std::string& path) {
    const auto value = dir.number(path);
    return value && *value >= 0 && *value <= CpuSet::max_cpu ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

/// A set of siblings under its newer or older name, as list or mask.
CpuSet siblings(const Dir& dir, std::initializer_list<std::string_view> names) {
    for (const auto name : names) {
        const bool is_list = name.ends_with("_list");
        const std::string path(name);
        if (auto set = is_list ? dir.cpu_list(path) : dir.cpu_mask(path); set && !set->empty()) return *std::move(set);
    }
    return {};
}

/// Collects groups of one level, each once.
void add_group(std::vector<CpuSet>& groups, const CpuSet& group) {
    if (!group.empty() && std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
}

/// A level that divides nothing further than the one above it is not there.
void drop_if_same(std::vector<CpuSet>& groups, const std::vector<CpuSet>& above) {
    if (groups == above) groups.clear();
}

struct Masks {
    CpuSet online, present, possible;
};

Masks read_masks(const Dir& dir, const std::vector<unsigned>& folders) {
    CpuSet all;
    for (const unsigned cpu : folders)
        all.insert(cpu);
    Masks masks;
    masks.present = dir.cpu_list("present").value_or(all);
    masks.possible = dir.cpu_list("possible").value_or(masks.present);
    if (auto online = dir.cpu_list("online")) {
        masks.online = *std::move(online);
        return masks;
    }
    for (const unsigned cpu : folders)
        if (dir.number("cpu" + std::to_string(cpu) + "/online").value_or(1) != 0) masks.online.insert(cpu);
    return masks;
}

std::optional<Cache::Type> cache_type(const std::optional<std::string>& text) {
    if (!text) return std::nullopt;
    if (*text == "Data") return Cache::Type::data;
    if (*text == "Instruction") return Cache::Type::instruction;
    if (*text == "Unified") return Cache::Type::unified;
    return std::nullopt;
}

/// "32K", "1024 KB", "30720K": kibibytes.
std::uint64_t cache_size(const std::optional<std::string>& text) {
    if (!text) return 0;
    const auto digits = std::string_view(*text).substr(0, text->find_first_not_of("0123456789"));
    const auto number = parse_number<std::uint64_t>(digits);
    if (!number || *number > (std::uint64_t{1} << 40)) return 0;
    return text->find('M') != std::string::npos ? *number << 20 : *number << 10;
}

void read_caches(const Dir& cpu_dir, unsigned cpu, Topology& topology, std::map<std::pair<unsigned, Cache::Type>, CpuSet>& covered) {
    constexpr unsigned most_caches = 16;
    for (unsigned index = 0; index < most_caches; ++index) {
        const std::string folder = "cache/index" + std::to_string(index) + "/";
        const auto level = cpu_dir.number(folder + "level");
        if (!level) {
            if (index > 8) break; // recordings may lack one in between
            continue;
        }
        const auto type = cache_type(cpu_dir.text(folder + "type"));
        if (!type || *level < 1 || *level > 8) continue;
        auto& done = covered[{static_cast<unsigned>(*level), *type}];
        if (done.contains(cpu)) continue; // read at a sibling
        // The mask first: kernels around 2.6.38 to 3.x listed only the CPU itself for caches of modules.
        auto cpus = cpu_dir.cpu_mask(folder + "shared_cpu_map");
        if (!cpus) cpus = cpu_dir.cpu_list(folder + "shared_cpu_list");
        CpuSet group = cpus.value_or(CpuSet{}) & topology.online;
        if (!group.contains(cpu)) group.insert(cpu);
        done |= group;
        topology.caches.push_back({static_cast<unsigned>(*level), *type, cache_size(cpu_dir.text(folder + "size")), std::move(group)});
    }
}

void read_cpus(const Dir& dir, Topology& topology) {
    std::map<std::pair<unsigned, Cache::Type>, CpuSet> covered;
    for (const unsigned id : topology.online) {
        Cpu cpu{.id = id, .package = {}, .die = {}, .cluster = {}, .core = {}, .node = {}, .capacity = {}, .smt = {}};
        if (const auto folder = dir.dir("cpu" + std::to_string(id))) {
            cpu.package = id_of(*folder, "topology/physical_package_id");
            cpu.die = id_of(*folder, "topology/die_id");
            cpu.cluster = id_of(*folder, "topology/cluster_id");
            cpu.core = id_of(*folder, "topology/core_id");
            if (const auto capacity = id_of(*folder, "cpu_capacity")) cpu.capacity = static_cast<unsigned>(*capacity);
            const auto place = folder->dir("topology");
            const Dir none;
            const Dir& where = place ? *place : none;
            cpu.smt = siblings(where, {"core_cpus_list", "thread_siblings_list", "core_cpus", "thread_siblings"}) & topology.online;
            add_group(topology.packages, siblings(where, {"package_cpus_list", "core_siblings_list", "package_cpus", "core_siblings"}) & topology.online);
            // Without a die id (-1) the kernel gives each CPU as its own die: that says nothing.
            if (cpu.die) add_group(topology.dies, siblings(where, {"die_cpus_list", "die_cpus"}) & topology.online);
            add_group(topology.clusters, siblings(where, {"cluster_cpus_list", "cluster_cpus"}) & topology.online);
            read_caches(*folder, id, topology, covered);
        }
        if (!cpu.smt.contains(id)) cpu.smt = {id};
        add_group(topology.cores, cpu.smt);
        topology.cpus.push_back(std::move(cpu));
    }
}

std::optional<std::uint64_t> node_memory(const Dir& node) {
    const auto text = node.text("meminfo");
    if (!text) return std::nullopt;
    for (const auto line : split(*text, '\n')) {
        // "Node 0 MemTotal:  65536 kB"
        const auto words = split_words(line);
        if (words.size() >= 4 && words[2] == "MemTotal:")
            if (const auto kib = parse_number<std::uint64_t>(words[3]); kib && *kib < (std::uint64_t{1} << 50)) return *kib * 1024;
    }
    return std::nullopt;
}

void read_nodes(const Dir& dir, Topology& topology) {
    const auto online = dir.cpu_list("online");
    for (const unsigned id : numbered(dir, "", "node")) {
        if (online && !online->contains(id)) continue;
        const auto folder = dir.dir("node" + std::to_string(id));
        if (!folder) continue;
        Node node{.id = id, .cpus = {}, .memory_bytes = node_memory(*folder), .distance = {}};
        auto cpus = folder->cpu_list("cpulist");
        if (!cpus) cpus = folder->cpu_mask("cpumap");
        node.cpus = cpus.value_or(CpuSet{}) & topology.online;
        const auto distances = folder->text("distance").value_or("");
        for (const auto word : split_words(distances))
            if (const auto value = parse_number<unsigned>(word)) node.distance.push_back(*value);
        for (auto& cpu : topology.cpus)
            if (node.cpus.contains(cpu.id) && !cpu.node) cpu.node = id;
        topology.nodes.push_back(std::move(node));
    }
}

} // namespace

Result<Topology> read_topology(const Root& root) {
    const auto cpu = root.sys().dir("devices/system/cpu");
    if (!cpu) return fail("there are no CPUs to be seen", "devices/system/cpu", cpu.error().code);
    Topology topology;
    const auto masks = read_masks(*cpu, numbered(*cpu, "", "cpu"));
    topology.online = masks.online;
    topology.present = masks.present;
    topology.possible = masks.possible | masks.online;
    topology.offline = masks.present - masks.online;
    if (topology.online.empty()) return fail("no CPU is online there", "devices/system/cpu");
    topology.isolated = cpu->cpu_list("isolated").value_or(CpuSet{}) & topology.online;
    topology.nohz_full = cpu->cpu_list("nohz_full").value_or(CpuSet{}) & topology.online;
    topology.housekeeping = topology.online - topology.isolated - topology.nohz_full;
    if (topology.housekeeping.empty()) topology.housekeeping = topology.online;
    read_cpus(*cpu, topology);
    for (auto* groups : {&topology.packages, &topology.dies, &topology.clusters, &topology.cores})
        std::ranges::sort(*groups, {}, &CpuSet::first);
    drop_if_same(topology.dies, topology.packages);
    drop_if_same(topology.clusters, topology.cores);
    drop_if_same(topology.clusters, topology.packages);
    if (topology.dies.empty())
        for (auto& each : topology.cpus)
            each.die.reset();
    std::ranges::sort(topology.caches, [](const Cache& a, const Cache& b) {
        return std::tuple(a.level, a.type, a.cpus.first()) < std::tuple(b.level, b.type, b.cpus.first());
    });
    // The kernel derives clusters from a shared cache where the firmware names none: no level of its own.
    for (const unsigned level : {2U, 3U})
        drop_if_same(topology.clusters, topology.cache_groups(level));
    if (const auto node = root.sys().dir("devices/system/node")) read_nodes(*node, topology);
    topology.kinds = read_kinds(root, topology);
    return topology;
}

} // namespace affinityd::topology
