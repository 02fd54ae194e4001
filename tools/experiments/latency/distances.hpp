// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/latencies.hpp"
#include "topology/topology.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace affinityd::experiments {

/// All pairs of one kind that were measured: "same LLC", "across sockets". ns for one way.
struct Distance {
    std::string name;
    std::size_t pairs = 0;
    double median = 0, least = 0, most = 0;
    double spread = 0; ///< median of how far the pairs are from the median
};

/// Which distance each pair has: by the topology where it is known, else by the levels that were found.
class Distances {
  public:
    /// `topology` may be null: a foreign table.
    Distances(const topology::Latencies& latencies, const std::vector<topology::LatencyLevel>& levels,
              const topology::Topology* topology);
    /// Near to far; those without a measured pair are left out.
    [[nodiscard]] const std::vector<Distance>& all() const { return distances_; }
    /// Index into all() of the distance between two CPUs, by their places in Latencies::cpus(). They differ,
    /// and the pair was measured.
    [[nodiscard]] std::size_t of(std::size_t a, std::size_t b) const;

  private:
    void add(std::string name, std::vector<double> values);
    std::size_t count_ = 0;
    std::vector<unsigned char> kinds_; ///< lower triangle, row by row: index into index_of_kind_
    std::vector<std::size_t> index_of_kind_;
    std::vector<Distance> distances_;
};

} // namespace affinityd::experiments
