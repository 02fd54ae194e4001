// SPDX-License-Identifier: Apache-2.0
#include "topology/reader.hpp"

#include "host/root.hpp"
#include "topology/caches.hpp"
#include "topology/groups.hpp"
#include "topology/kinds.hpp"
#include "topology/nodes.hpp"
#include "topology/numbered.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace affinityd::topology {

namespace {

using host::Dir;
using host::Root;

/// Drops a level that has the same groups as the one above it.
void drop_if_same(std::vector<CpuSet>& groups, const std::vector<CpuSet>& above) {
    if (groups == above) groups.clear();
}

struct Masks {
    CpuSet online, present, possible;
};

Result<Masks> read_masks(const Dir& dir) {
    const auto numbers = numbered(dir, "cpu");
    if (!numbers) return std::unexpected(numbers.error());
    CpuSet folders;
    for (const unsigned cpu : *numbers)
        folders.insert(cpu);
    Masks masks;
    const CpuSet readable = CpuSet::range(0, greatest_number);
    masks.present = dir.cpu_list("present").value_or(folders) & readable;
    masks.possible = dir.cpu_list("possible").value_or(masks.present) & readable;
    if (auto online = dir.cpu_list("online")) {
        // A CPU that has no folder although others do is a slip of the recording, or an attempt to fill
        // memory with a million of them.
        masks.online = folders.empty() ? *online & CpuSet::range(0, greatest_number / 8) : *online & folders;
        return masks;
    }
    for (const unsigned cpu : folders)
        if (dir.number("cpu" + std::to_string(cpu) + "/online").value_or(1) != 0) masks.online.insert(cpu);
    return masks;
}

/// The levels of cpuN/topology; the names before Linux 5.3 and after.
struct Levels {
    Levels(const Dir& dir, const CpuSet& online)
        : drawers(dir, online, {"drawer_siblings_list", "drawer_siblings"}),
          books(dir, online, {"book_siblings_list", "book_siblings"}),
          packages(dir, online, {"package_cpus_list", "core_siblings_list", "package_cpus", "core_siblings"}),
          dies(dir, online, {"die_cpus_list", "die_cpus"}),
          clusters(dir, online, {"cluster_cpus_list", "cluster_cpus"}),
          cores(dir, online, {"core_cpus_list", "thread_siblings_list", "core_cpus", "thread_siblings"}),
          package_id(dir, "topology/physical_package_id"), die_id(dir, "topology/die_id"),
          cluster_id(dir, "topology/cluster_id"), core_id(dir, "topology/core_id"),
          capacity(dir, "cpu_capacity") {}
    GroupReader drawers, books, packages, dies, clusters, cores;
    IdReader package_id, die_id, cluster_id, core_id, capacity;
};

/// The id of a CPU's group: members share it by definition (core ids are not like that: AMD's modules are
/// cores that have two).
std::optional<int> group_id(const Topology& topology, unsigned cpu, const GroupReader& groups,
                            std::optional<std::size_t> place, IdReader& ids, std::optional<int> Cpu::*field) {
    if (place && groups[*place].first() < cpu)
        if (const Cpu* first = topology.find(groups[*place].first())) return first->*field;
    return ids.read(cpu);
}

Cpu read_cpu(unsigned id, Levels& levels, const Topology& topology) {
    Cpu cpu{
        .id = id, .package = {}, .die = {}, .cluster = {}, .core = {}, .node = {}, .capacity = {}, .smt = {}};
    levels.drawers.read(id);
    levels.books.read(id);
    cpu.package =
        group_id(topology, id, levels.packages, levels.packages.read(id), levels.package_id, &Cpu::package);
    cpu.cluster =
        group_id(topology, id, levels.clusters, levels.clusters.read(id), levels.cluster_id, &Cpu::cluster);
    // Without a die id (-1) the kernel gives each CPU as its own die, which means none.
    cpu.die = group_id(topology, id, levels.dies, levels.dies.find(id), levels.die_id, &Cpu::die);
    if (cpu.die) levels.dies.read(id);
    cpu.core = levels.core_id.read(id);
    if (const auto capacity = levels.capacity.read(id)) cpu.capacity = static_cast<unsigned>(*capacity);
    auto core = levels.cores.read(id);
    if (!core) core = levels.cores.add_alone(id);
    cpu.smt = levels.cores[*core];
    return cpu;
}

void read_cpus(const Dir& dir, bool sizes, Topology& topology) {
    Levels levels(dir, topology.online);
    CacheReader caches(dir, topology.online, sizes);
    for (const unsigned id : topology.online) {
        topology.cpus.push_back(read_cpu(id, levels, topology));
        caches.read(id);
    }
    topology.drawers = levels.drawers.take();
    topology.books = levels.books.take();
    topology.packages = levels.packages.take();
    topology.dies = levels.dies.take();
    topology.clusters = levels.clusters.take();
    topology.cores = levels.cores.take();
    topology.caches = caches.take();
}

/// Drops the levels that add no information.
void drop_levels(Topology& topology) {
    drop_if_same(topology.books, topology.packages);
    drop_if_same(topology.drawers, topology.books.empty() ? topology.packages : topology.books);
    drop_if_same(topology.dies, topology.packages);
    drop_if_same(topology.clusters, topology.cores);
    drop_if_same(topology.clusters, topology.packages);
    if (topology.dies.empty())
        for (auto& each : topology.cpus)
            each.die.reset();
    // The kernel derives clusters from a shared cache where the firmware names none: no level of its own.
    for (const unsigned level : {2U, 3U})
        drop_if_same(topology.clusters, topology.cache_groups(level));
}

} // namespace

Result<Topology> read_topology(const Root& root, Detail detail) {
    const auto cpu = root.sys().dir("devices/system/cpu");
    if (!cpu) return fail("there are no CPUs to be seen", "devices/system/cpu", cpu.error().code);
    Topology topology;
    const auto read = read_masks(*cpu);
    if (!read) return std::unexpected(read.error());
    const auto& masks = *read;
    topology.online = masks.online;
    topology.present = masks.present;
    topology.possible = masks.possible | masks.online;
    topology.offline = masks.present - masks.online;
    if (topology.online.empty()) return fail("no CPU is online there", "devices/system/cpu");
    topology.isolated = read_isolated(root) & topology.online;
    topology.nohz_full = cpu->cpu_list("nohz_full").value_or(CpuSet{}) & topology.online;
    topology.housekeeping = topology.online - topology.isolated - topology.nohz_full;
    if (topology.housekeeping.empty()) topology.housekeeping = topology.online;
    read_cpus(*cpu, detail == Detail::all, topology);
    drop_levels(topology);
    if (const auto node = root.sys().dir("devices/system/node")) {
        if (auto nodes = read_nodes(*node, topology); !nodes) return std::unexpected(nodes.error());
    } else if (!host::means_absent(node.error().code)) {
        return std::unexpected(node.error());
    }
    topology.kinds = read_kinds(root, topology);
    return topology;
}

CpuSet read_isolated(const host::Root& root) {
    const auto at_boot = root.sys().cpu_list("devices/system/cpu/isolated");
    const auto by_partitions = root.sys().cpu_list("fs/cgroup/cpuset.cpus.isolated");
    return at_boot.value_or(CpuSet{}) | by_partitions.value_or(CpuSet{});
}

std::optional<CpuSet> read_online(const host::Root& root) {
    const auto dir = root.sys().dir("devices/system/cpu");
    if (!dir) return std::nullopt;
    auto online = dir->cpu_list("online");
    if (!online) return std::nullopt;
    return std::move(*online);
}

} // namespace affinityd::topology
