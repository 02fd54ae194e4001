// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_map>

namespace affinityd::inventory {

/// CPU time for searches that others can make long: each has some, and what it has used comes back with time.
class SearchCredit {
  public:
    using Time = std::chrono::steady_clock::time_point;
    static constexpr std::chrono::milliseconds most{200};
    static constexpr int times_as_long = 20; ///< until it has come back

    [[nodiscard]] bool has_any(std::uint64_t whose, Time now) const;
    void spend(std::uint64_t whose, std::chrono::nanoseconds used, Time now);

  private:
    std::unordered_map<std::uint64_t, Time> whole_at_; ///< when all of it has come back
};

} // namespace affinityd::inventory
