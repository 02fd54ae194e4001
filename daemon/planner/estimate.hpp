// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/cpu_load.hpp"

#include <cstdint>

namespace affinityd::planner {

/// What a task uses, on average over about the last sixty times that it was weighed, and how far that may be
/// from the truth: the longer it goes on as it does, the less. The first weight is taken as it is. Who is
/// weighed twice running as it never was before does other work now: what was known is forgotten. Whose use
/// has changed little by little counts with the last ten times.
class Estimate {
  public:
    Estimate() = default;
    void weigh(Weight weight);
    [[nodiscard]] Weight weight() const { return mean_; }
    /// The standard error of weight(); 0 as long as it was weighed once only.
    [[nodiscard]] Weight error() const;

  private:
    std::uint32_t mean_ = one_cpu;
    std::uint32_t recent_ = 0; ///< the average of the last ten times
    std::uint32_t spread_ = 0; ///< the standard deviation
    std::uint16_t times_ = 0;  ///< that it was weighed, up to those that count
    std::int16_t odd_ = 0;     ///< 1, -1: the last weight was far above or below all before
};

} // namespace affinityd::planner
