// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/latencies.hpp"
#include "topology/latency_levels.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::machine {

/// What was measured of the way between CPUs, with what it shows. A value; to make one takes some tenths of a
/// second on a large machine.
class LatencyMatrix {
  public:
    explicit LatencyMatrix(topology::Latencies measured);

    [[nodiscard]] const topology::Latencies& measured() const { return measured_; }
    /// With pairs that were not measured as others between the same groups, as far as these are known.
    [[nodiscard]] const topology::Latencies& completed() const { return completed_; }
    /// ns for one way without the noise of single pairs: what is usual within the finest group that has both
    /// CPUs, or between CPUs that are in none together. 0: no way between these is known.
    [[nodiscard]] double usual_ns(unsigned a, unsigned b) const;

  private:
    [[nodiscard]] bool has_in_one_group(std::size_t level, unsigned a, unsigned b) const;
    topology::Latencies measured_;
    std::vector<topology::LatencyLevel> levels_;
    std::vector<std::vector<unsigned>>
        groups_; ///< by level, then CPU number: one more than its group's; 0: none
    topology::Latencies completed_;
    double apart_ = 0; ///< median between CPUs that no level has in one group
};

/// The latencies between the CPUs of a machine, if they were measured on it.
struct KnownLatencies {
    std::shared_ptr<const LatencyMatrix> matrix; ///< null: none
    std::string unused;    ///< why what is kept does not count; "": it does, or nothing is kept
    std::int64_t time = 0; ///< when they were measured, seconds since 1970; 0: not known
};

/// What is kept, as it counts on this machine. `model`: of its CPUs, as topology::read_cpu_model() has it.
[[nodiscard]] KnownLatencies latencies_here(topology::Latencies kept, const topology::Topology& topology,
                                            std::string_view model);

} // namespace affinityd::machine
