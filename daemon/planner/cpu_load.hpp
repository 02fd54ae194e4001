// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "topology/topology.hpp"

#include <compare>
#include <cstdint>
#include <vector>

namespace affinityd::planner {

/// An amount of work: millionths of a CPU.
using Weight = std::int64_t;
constexpr Weight one_cpu = 1'000'000; ///< also the weight of a task of which nothing is known

/// More than this, and lanes are worth being moved.
constexpr Weight much = one_cpu / 2;

/// How much work sits on each CPU, core, cache group (or group by measured latency, where that is known) and
/// node of a machine. A value.
class CpuLoad {
  public:
    /// Without a topology each CPU is a core of its own, and all are in one group and one node.
    CpuLoad() = default;
    explicit CpuLoad(const topology::Topology& topology);

    /// Sums of groups and nodes only.
    struct Around {
        std::vector<Weight> groups, nodes; ///< empty: no load
    };

    /// Puts work on these CPUs, to each its part; a negative amount takes it away again. To add a and take it
    /// away leaves what was there before. The part of a CPU that is offline counts nowhere: who has it gets
    /// others.
    void add(const CpuSet& cpus, Weight amount) { change(cpus, 0, amount); }
    /// As add(-from) and add(to); sums of groups and nodes also in `own`.
    void change(const CpuSet& cpus, Weight from, Weight to, Around* own = nullptr);

    /// The load of a place, of the core that it is on, and of what lies around it; compared from left to
    /// right.
    struct Level {
        Weight core = 0;  ///< of its cores, together
        Weight cpu = 0;   ///< of its CPUs, together
        Weight group = 0; ///< of each core of its cache group, on average
        Weight node = 0;  ///< of each core of its node, on average
        friend auto operator<=>(const Level&, const Level&) = default;
    };
    /// `cpus` must not be empty.
    [[nodiscard]] Level of(const CpuSet& cpus) const;
    /// The same in two steps, the second of which is seldom needed to tell places apart. `own`: work that
    /// does not count in groups and nodes.
    [[nodiscard]] Level place(const CpuSet& cpus) const;
    void add_surroundings(Level& level, unsigned cpu, const Around& own) const;
    /// The part of `around` in the group of this CPU.
    [[nodiscard]] Weight in_group(const Around& around, unsigned cpu) const {
        const auto group = where(cpu).group;
        return group < around.groups.size() ? around.groups[group] : 0;
    }
    /// True for all CPUs of the topology.
    [[nodiscard]] bool covers(const CpuSet& cpus) const { return !all_.empty() && cpus.contains(all_); }
    [[nodiscard]] Weight on_cpu(unsigned cpu) const { return cpu < cpus_.size() ? cpus_[cpu] : 0; }
    [[nodiscard]] Weight on_core(unsigned cpu) const; ///< of its core
    /// The first CPU of its core.
    [[nodiscard]] unsigned core_of(unsigned cpu) const { return where(cpu).core; }
    [[nodiscard]] Weight busiest() const; ///< the load of the busiest core

  private:
    struct Where {
        unsigned core = 0; ///< its first CPU
        unsigned group = 0, node = 0;
    };
    [[nodiscard]] Where where(unsigned cpu) const {
        return cpu < places_.size() ? places_[cpu] : Where{cpu, 0, 0};
    }
    [[nodiscard]] bool counts(unsigned cpu) const { return all_.empty() || all_.contains(cpu); }
    CpuSet all_;
    std::vector<Where> places_; ///< by CPU
    std::vector<Weight> cpus_;
    std::vector<Weight> cores_; ///< by first CPU
    Around around_;
    std::vector<unsigned> group_cores_, node_cores_; ///< how many each has
};

} // namespace affinityd::planner
