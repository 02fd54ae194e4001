// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace affinityd::ttcp {

/// How many latencies fell into which range. Plain bytes, because a process writes it into memory that its
/// parent reads. Ranges are as wide as their value's 128th part, so that a quantile is right to 0.8 %;
/// below 256 ns each nanosecond has its own. Latencies of more than 18 minutes count as that.
class LatencyCounts {
  public:
    void add(std::uint64_t nanoseconds);
    LatencyCounts& operator+=(const LatencyCounts& other);
    [[nodiscard]] std::uint64_t total() const { return total_; }
    /// In nanoseconds: the latency that `part` (0 to 1) of all do not exceed, within its range as if those in
    /// it were evenly spread. No value without latencies.
    [[nodiscard]] std::optional<double> quantile(double part) const;

  private:
    static constexpr unsigned bits = 7, most_bits = 40;
    static constexpr std::size_t ranges = static_cast<std::size_t>(most_bits - bits + 1) << bits;
    [[nodiscard]] static std::size_t range_of(std::uint64_t nanoseconds);
    [[nodiscard]] static double low_end(std::size_t range);

    std::array<std::uint64_t, ranges> counts_{};
    std::uint64_t total_ = 0;
};
static_assert(std::is_trivially_copyable_v<LatencyCounts>);

} // namespace affinityd::ttcp
