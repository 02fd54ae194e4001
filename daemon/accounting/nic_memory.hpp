// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/nic_shares.hpp"
#include "base/task_id.hpp"

#include <chrono>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::accounting {

/// Which NICs have served each process lately.
class NicMemory {
  public:
    /// A search begins; `now`: of any clock that only goes forward. What an abandoned one found stays.
    void begin(std::chrono::seconds now);
    /// Keys of the NICs that serve a process, with what is seen of it now; in ascending order.
    [[nodiscard]] std::vector<std::string> note(const TaskId& process, const NicSockets& seen);
    /// The search has ended: processes that it did not ask for are forgotten.
    void end();

  private:
    std::chrono::seconds now_{};
    std::unordered_map<TaskId, NicShares> known_, noted_; ///< before this search, and in it
};

} // namespace affinityd::accounting
