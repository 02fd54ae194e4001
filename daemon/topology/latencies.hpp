// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::topology {

struct Topology;

/// The machine that latencies were measured on, as far as it can be known again.
struct MeasuredMachine {
    struct Place {
        int package = -1, core = -1; ///< the kernel's ids; -1: it gives none
        friend bool operator==(const Place&, const Place&) = default;
    };
    std::string model;         ///< of the CPUs (read_cpu_model()); "": not known
    std::vector<Place> places; ///< of each CPU, in ascending order; empty: not known, as of a foreign table
    friend bool operator==(const MeasuredMachine&, const MeasuredMachine&) = default;
};

/// How long a message takes from one CPU to another, as it was measured: half a round trip, the same both
/// ways. A value.
class Latencies {
  public:
    static constexpr std::size_t most_cpus = 1024;
    static constexpr double most_ns = 1e9; ///< one second: beyond that it is no latency

    Latencies() = default;
    /// Nothing is measured yet. CPUs beyond the first most_cpus are left out.
    explicit Latencies(const CpuSet& cpus, MeasuredMachine machine = {});

    [[nodiscard]] const std::vector<unsigned>& cpus() const { return cpus_; } ///< ascending
    [[nodiscard]] const MeasuredMachine& machine() const { return machine_; }
    /// ns for one way between two CPUs; no value: not measured, the same CPU, or none of these.
    [[nodiscard]] std::optional<double> ns(unsigned a, unsigned b) const;
    /// The same by places in cpus(), both below its size.
    [[nodiscard]] std::optional<double> at(std::size_t a, std::size_t b) const;
    /// Nothing happens unless both are in cpus() and differ, and `ns` is above zero and most_ns at most.
    void set(unsigned a, unsigned b, double ns);
    [[nodiscard]] std::size_t measured() const; ///< pairs with a value
    [[nodiscard]] std::size_t pairs() const { return ns_.size(); }

    /// True if all that is known of the machine holds of this one, at least for the CPUs that are online now,
    /// and at least their places are known. `model` as read_cpu_model gives it.
    [[nodiscard]] bool is_of(const Topology& topology, std::string_view model) const;

    friend bool operator==(const Latencies&, const Latencies&) = default;

  private:
    std::vector<unsigned> cpus_;
    std::vector<float> ns_; ///< lower triangle, row by row; 0: not measured
    MeasuredMachine machine_;
};

/// `cpus` as they are on a machine, with its places and its model.
[[nodiscard]] MeasuredMachine describe(const Topology& topology, const CpuSet& cpus, std::string model);

/// A table as core-to-core-latency writes it: n rows of n cells with commas between them, ns for one way, the
/// diagonal empty (or 0), CPUs 0 to n - 1. A pair that is given both ways has the mean; one that is
/// not given is not known. An Error names the line: cells that are no number above zero, rows of other
/// lengths, fewer than 2 CPUs or more than Latencies::most_cpus, no pair at all. Source:
/// https://github.com/nviennot/core-to-core-latency.
[[nodiscard]] Result<Latencies> latencies_from_csv(std::string_view text);
inline constexpr std::size_t most_csv_bytes = 32U << 20;

/// As the measurement history keeps them: {"cpus": "0-3", "model": "...", "places": [[package, core], ...],
/// "ns": [[], [20.1], [20.3, null], ...]}, a lower triangle with null for what was not measured. Other
/// members are no concern of it. Figures have four digits at most.
[[nodiscard]] Result<Latencies> latencies_from_json(std::string_view text);
[[nodiscard]] std::string to_json(const Latencies& latencies);

/// CPUs that are clearly nearer to each other than to all others.
struct LatencyLevel {
    double ns = 0;              ///< for one way within the groups, not within those of a finer level: median
    std::vector<CpuSet> groups; ///< by first CPU, disjoint, every CPU in one; some may stand alone
    friend bool operator==(const LatencyLevel&, const LatencyLevel&) = default;
};

/// The groups that latencies show, fine to coarse, each level's groups being unions of the finer one's. None
/// where the machine is uniform, or what was measured shows no clear groups. Found without any knowledge of
/// the machine: average linkage, cut where the distance leaps, and kept where nearly every CPU is clearly
/// nearer to its mates than to any other group. A CPU that is slow to all others stands in no level.
[[nodiscard]] std::vector<LatencyLevel> latency_levels(const Latencies& latencies);

/// The level that counts as this machine's: the finest one whose groups are more than cores; all CPUs as one
/// group where there is none, with the median of all pairs. No value: nothing was measured.
[[nodiscard]] std::optional<LatencyLevel> measured_level(const Latencies& latencies,
                                                         const Topology& topology);

} // namespace affinityd::topology
