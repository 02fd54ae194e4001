// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace affinityd::experiments {

/// How near two different CPUs are, by what the machine says of itself; the nearest that holds.
enum class Near {
    core,    ///< hardware threads of one core
    llc,     ///< they share the last-level cache
    node,    ///< one NUMA node, in one package
    package, ///< one package, different nodes
    across,  ///< different packages
};
inline constexpr std::array near_ones{Near::core, Near::llc, Near::node, Near::package, Near::across};
/// "same core", "same LLC", "same node", "same socket", "across sockets"
[[nodiscard]] std::string_view name_of(Near near);

/// Two CPUs, the lower one first.
struct CpuPair {
    unsigned a = 0, b = 0;
    friend auto operator<=>(const CpuPair&, const CpuPair&) = default;
};

/// How near the CPUs of a machine are. Knows the groups of each, so that a question is quick.
class Nearness {
  public:
    explicit Nearness(const topology::Topology& topology);
    /// Both online, and different.
    [[nodiscard]] Near between(unsigned a, unsigned b) const;
    /// The first CPU of its LLC group; the CPU itself if it is offline.
    [[nodiscard]] unsigned llc_of(unsigned cpu) const;
    [[nodiscard]] unsigned core_of(unsigned cpu) const; ///< likewise of its core
    /// All pairs of `cpus` that are that near, by number.
    [[nodiscard]] std::vector<CpuPair> pairs(const CpuSet& cpus, Near near) const;
    /// The first of them; no value: there is none.
    [[nodiscard]] std::optional<CpuPair> first_pair(const CpuSet& cpus, Near near) const;

  private:
    struct Groups {
        unsigned core, llc, node, package; ///< each by its first CPU
    };
    [[nodiscard]] Groups of(unsigned cpu) const;
    std::vector<Groups> groups_; ///< by CPU number
};

/// One CPU of each core: the lowest of `cpus` in it.
[[nodiscard]] CpuSet one_per_core(const topology::Topology& topology, const CpuSet& cpus);

} // namespace affinityd::experiments
