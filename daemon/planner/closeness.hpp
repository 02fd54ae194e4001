// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/latency_matrix.hpp"
#include "topology/topology.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace affinityd::planner {

/// How close the online CPUs of a machine are to each other: by measured latencies where there are any, else
/// by topology. A value.
class Closeness {
  public:
    /// Smaller is closer. Measured: femtoseconds for one way. Else a number that means nothing but the order:
    /// one core, each cache, die, node, package, by NUMA distance.
    using Distance = std::uint64_t;

    /// `matrix`: of this machine; null: none was measured.
    Closeness(const topology::Topology& topology, std::shared_ptr<const machine::LatencyMatrix> matrix);

    [[nodiscard]] Distance between(unsigned a, unsigned b) const {
        const std::size_t from = place(a), to = place(b);
        return from == nowhere || to == nowhere ? farthest : distances_[from * count_ + to];
    }
    /// Between places with several CPUs: on average. Neither is empty.
    [[nodiscard]] Distance between(std::span<const unsigned> a, std::span<const unsigned> b) const {
        return a.size() == 1 && b.size() == 1 ? between(a[0], b[0]) : mean(a, b);
    }
    [[nodiscard]] Distance between(const CpuSet& a, const CpuSet& b) const;
    /// The same without the noise of measuring: worth moving for.
    [[nodiscard]] Distance usual(const CpuSet& a, const CpuSet& b) const;
    /// As measured; no value: this pair was not.
    [[nodiscard]] std::optional<double> ns(unsigned a, unsigned b) const;
    /// There is a matrix, and in it no pair that is as close as this one: where it stands between others is
    /// by topology.
    [[nodiscard]] bool is_guess(unsigned a, unsigned b) const;
    [[nodiscard]] const std::shared_ptr<const machine::LatencyMatrix>& matrix() const { return matrix_; }
    /// True if it would be made the same again.
    [[nodiscard]] bool is_of(const topology::Topology& topology,
                             const std::shared_ptr<const machine::LatencyMatrix>& matrix) const;

  private:
    static constexpr std::size_t nowhere = ~std::size_t{0};
    static constexpr Distance farthest = 1ULL << 48; ///< more than a minute, if it is a time
    [[nodiscard]] std::size_t place(unsigned cpu) const {
        return cpu < place_.size() ? place_[cpu] : nowhere;
    }
    [[nodiscard]] static Distance femtoseconds(double ns);
    [[nodiscard]] Distance mean(std::span<const unsigned> a, std::span<const unsigned> b) const;
    bool take_measured();
    [[nodiscard]] std::vector<std::uint32_t> steps_of(const topology::Topology& topology) const;
    void estimate(const std::vector<std::uint32_t>& steps);

    CpuSet online_;
    std::shared_ptr<const machine::LatencyMatrix> matrix_;
    std::vector<std::size_t> place_; ///< by CPU; `nowhere`: not online
    std::size_t count_ = 0;
    std::vector<Distance> distances_; ///< by place and place
    std::vector<bool> is_guess_;      ///< likewise; empty: none is
};

} // namespace affinityd::planner
