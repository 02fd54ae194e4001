// SPDX-License-Identifier: Apache-2.0
// How near CPUs are to each other, and why a machine cannot do an experiment.
#pragma once

#include "base/cpu_set.hpp"
#include "topology/topology.hpp"

#include <array>
#include <optional>
#include <string>
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
[[nodiscard]] inline CpuPair ordered(unsigned a, unsigned b) { return a < b ? CpuPair{a, b} : CpuPair{b, a}; }

/// How near the CPUs of a machine are. Knows the groups of each, so that a question is quick.
class Nearness {
  public:
    explicit Nearness(const topology::Topology& topology);
    /// Different ones; a CPU that is offline is near to none.
    [[nodiscard]] Near between(unsigned a, unsigned b) const;
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

/// The lowest of `cpus` in each core.
[[nodiscard]] CpuSet one_per_core(const topology::Topology& topology, const CpuSet& cpus);

/// Why a machine cannot do an experiment: no fault, some machines are so.
enum class Refusal {
    one_cpu,   ///< fewer than two CPUs may be used
    no_smt,    ///< no core has two hardware threads that may be used
    one_core,  ///< all CPUs that may be used are of one core
    one_llc,   ///< all CPUs that may be used share one last-level cache
    no_caches, ///< the sizes of its caches are not known
};

/// "CPU 3", "CPUs 0-3"; not of none.
[[nodiscard]] std::string words_of(const CpuSet& cpus);
/// A sentence that says what is missing: "this needs two CPUs, and only CPU 0 may be used here". `usable`:
/// which may be used.
[[nodiscard]] std::string sentence_of(Refusal refusal, const CpuSet& usable);
/// The same with what to type instead.
[[nodiscard]] std::string refusal_of(Refusal refusal, const CpuSet& usable);

} // namespace affinityd::experiments
