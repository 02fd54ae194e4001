// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/usage.hpp"
#include "affinity-ttcp/testbed/testbed.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace affinityd::ttcp {

/// CPU time and cycles of the NAPI threads of a testbed's paths.
class ThreadUse {
  public:
    ThreadUse(const host::Root& root, const Testbed& testbed);
    /// Since the threads began; a thread that has ended counts as 0.
    [[nodiscard]] double seconds() const;
    /// Since this object was made; no value without hardware counters.
    [[nodiscard]] std::optional<std::uint64_t> cycles() const;

  private:
    [[nodiscard]] double seconds_of(int tid) const;
    const host::Root& root_;
    std::vector<int> tids_;
    std::vector<CycleCounter> counters_;
};

} // namespace affinityd::ttcp
