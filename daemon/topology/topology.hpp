// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::topology {

/// A logical CPU. Ids are the kernel's and may repeat across packages; no value: not recorded, or -1.
struct Cpu {
    unsigned id = 0;
    std::optional<int> package, die, cluster, core;
    std::optional<unsigned> node; ///< NUMA node; no value where the machine has none or the CPU is in none
    std::optional<unsigned> capacity; ///< cpu_capacity, 0..1024, where the architecture has it
    CpuSet smt;                       ///< online CPUs of its core, itself included; never empty
};

struct Cache {
    enum class Type { data, instruction, unified };
    unsigned level = 0;
    Type type = Type::unified;
    std::uint64_t size_bytes = 0; ///< 0: not recorded
    CpuSet cpus;                  ///< online CPUs that share it; never empty
    friend bool operator==(const Cache&, const Cache&) = default;
};

struct Node {
    unsigned id = 0;
    CpuSet cpus;                               ///< online CPUs; empty for a memory-only node
    std::optional<std::uint64_t> memory_bytes; ///< MemTotal; no value: not recorded
    std::vector<unsigned> distance; ///< to each node in Topology::nodes order, 10 = local; may be empty
};

/// CPUs of one kind on a machine with unlike cores (hybrid, big.LITTLE).
struct Kind {
    std::string name;  ///< "performance", "efficiency", ...
    unsigned rank = 0; ///< 0 = most capable
    CpuSet cpus;
};

/// Sets of CPUs that the kernel itself names.
struct CpuMasks {
    CpuSet possible, present, online, offline; ///< offline: present and not online
    CpuSet isolated;                           ///< by isolcpus=domain or a cpuset partition, cut to online
    CpuSet nohz_full;                          ///< nohz_full=, cut to online
    CpuSet pods;         ///< that containers and partitions have for themselves; machine::own_cpus()
    CpuSet housekeeping; ///< online - isolated - nohz_full; all online ones if none is left
};

/// Groups of online CPUs, each level by first CPU; empty: the machine does not have the level.
struct CpuLevels {
    std::vector<CpuSet> packages, dies, clusters;
    std::vector<CpuSet> drawers, books; ///< s390: packages are in books, books in drawers
    std::vector<CpuSet> cores;          ///< SMT siblings
    std::vector<CpuSet> measured;       ///< by latency (use_latencies()); together they cover all CPUs
};

/// A machine's CPUs, and how near they are to each other. A value; made by read_topology or by a
/// test.
struct Topology : CpuMasks, CpuLevels {
    std::vector<Cpu> cpus;     ///< online only, ascending by id
    std::vector<Cache> caches; ///< by level, then type, then first CPU
    std::vector<Node> nodes;   ///< ascending by id
    std::vector<Kind> kinds;   ///< empty: all alike

    [[nodiscard]] const Cpu* find(unsigned cpu) const; ///< nullptr if not online
    [[nodiscard]] const Node* node(unsigned id) const;
    /// Groups of data or unified caches of a level, by first CPU.
    [[nodiscard]] std::vector<CpuSet> cache_groups(unsigned level) const;
    /// Last-level-cache groups that cover every online CPU: the widest data/unified cache of each CPU; CPUs
    /// without any recorded cache fall back to their die, package or node group. By first CPU; disjoint.
    [[nodiscard]] std::vector<CpuSet> llc_groups() const;
    [[nodiscard]] CpuSet core_of(unsigned cpu) const;    ///< SMT siblings; {} if not online
    [[nodiscard]] CpuSet llc_of(unsigned cpu) const;     ///< {} if not online
    [[nodiscard]] CpuSet package_of(unsigned cpu) const; ///< {} if not online
    /// The CPUs of its NUMA node; all online ones if it is in none.
    [[nodiscard]] CpuSet node_cpus_of(unsigned cpu) const;
    /// All CPUs that are not the first online one of their core.
    [[nodiscard]] CpuSet smt_secondary() const;
};

} // namespace affinityd::topology
