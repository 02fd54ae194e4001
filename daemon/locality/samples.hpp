// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "locality/read_counts.hpp"

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace affinityd::locality {

/// Sockets that were looked at, and had taken data in shortly before: where it arrived, and where their
/// reader ran last.
class Samples {
  public:
    /// See ReadCount.
    struct Pair {
        int pid = 0;
        std::uint64_t network_space = 0;
        unsigned napi = 0;
        std::optional<unsigned> arrival{}; ///< CPU; no value: not known
        unsigned reader = 0;               ///< CPU
        int thread = 0;                    ///< tid
        friend auto operator<=>(const Pair&, const Pair&) = default;
    };

    void add(const Pair& pair, std::uint64_t samples = 1);
    /// Halves each count until all together are no more than `most`.
    void fade(std::uint64_t most);
    void forget(const std::function<bool(int pid)>& is_meant);
    [[nodiscard]] std::uint64_t count() const { return count_; }
    /// `names` of its processes.
    [[nodiscard]] ReadCounts counts(std::map<int, std::string> names) const;

  private:
    std::map<Pair, std::uint64_t> pairs_;
    std::uint64_t count_ = 0; ///< of all
};

} // namespace affinityd::locality
