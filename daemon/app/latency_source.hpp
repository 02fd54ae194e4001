// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/work.hpp"
#include "app/world.hpp"
#include "host/root.hpp"

#include <chrono>
#include <future>
#include <optional>
#include <string>

namespace affinityd::app {

/// Gets the newest latencies from the measurement history, for policies that say `measured`: at the beginning
/// of each pass, on a thread of its own, since a matrix is long. What is there counts from that pass on.
class LatencySource {
  public:
    explicit LatencySource(const host::Root& root) : root_(root) {}

    /// Begins to look into the history of `state_dir` ("": there is none), if some policy asks.
    void begin(const World& world, const std::string& state_dir);
    /// True: it has looked, and `world` has what it found; or that takes too long, and the next pass has it.
    [[nodiscard]] bool step(World& world, const OutOfTime& out_of_time);

  private:
    using Found = std::optional<machine::KnownLatencies>; ///< no value: nothing has changed
    const host::Root& root_;
    std::future<Found> reading_;
    std::chrono::steady_clock::time_point until_;
};

} // namespace affinityd::app
