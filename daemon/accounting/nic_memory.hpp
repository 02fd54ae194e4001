// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"

#include <chrono>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::accounting {

/// Which NICs have served a process lately. Who is connected at one moment says little: a NIC counts until it
/// has not been seen for ten minutes, so that no lane is given away while a client is silent.
class NicMemory {
  public:
    static constexpr std::chrono::minutes term{10};

    /// A search begins; `now`: of any clock that only goes forward. What an abandoned one found stays.
    void begin(std::chrono::seconds now);
    /// What is seen now and was seen lately, in ascending order.
    [[nodiscard]] std::vector<std::string> note(const TaskId& process, const std::vector<std::string>& seen);
    /// The search has ended: processes that it did not ask for are forgotten.
    void end();

  private:
    struct Sight {
        std::string nic;
        std::chrono::seconds last;
    };
    using Sights = std::unordered_map<TaskId, std::vector<Sight>>;
    std::chrono::seconds now_{};
    Sights known_, noted_; ///< before this search, and in it
};

} // namespace affinityd::accounting
