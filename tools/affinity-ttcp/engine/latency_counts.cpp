// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/latency_counts.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace affinityd::ttcp {

/// The first 2^(bits + 1) values have ranges of their own; then each power of two has 2^bits of equal width.
std::size_t LatencyCounts::range_of(std::uint64_t nanoseconds) {
    const std::uint64_t value = std::min(nanoseconds, (std::uint64_t{1} << most_bits) - 1);
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > bits + 1 ? width - bits - 1 : 0;
    return (static_cast<std::size_t>(shift) << bits) + static_cast<std::size_t>(value >> shift);
}

double LatencyCounts::low_end(std::size_t range) {
    const std::size_t power = range >> bits;
    if (power == 0) return static_cast<double>(range);
    const auto shift = static_cast<int>(power - 1);
    return std::ldexp(static_cast<double>(range - (static_cast<std::size_t>(shift) << bits)), shift);
}

void LatencyCounts::add(std::uint64_t nanoseconds) {
    ++counts_[range_of(nanoseconds)];
    ++total_;
}

LatencyCounts& LatencyCounts::operator+=(const LatencyCounts& other) {
    for (std::size_t i = 0; i < ranges; ++i)
        counts_[i] += other.counts_[i];
    total_ += other.total_;
    return *this;
}

std::optional<double> LatencyCounts::quantile(double part) const {
    if (total_ == 0) return std::nullopt;
    const double wanted = std::clamp(part, 0.0, 1.0) * static_cast<double>(total_);
    double before = 0;
    for (std::size_t i = 0; i < ranges; ++i) {
        const auto here = static_cast<double>(counts_[i]);
        if (here > 0 && before + here >= wanted)
            return low_end(i) + (low_end(i + 1) - low_end(i)) * (wanted - before) / here;
        before += here;
    }
    return std::nullopt;
}

} // namespace affinityd::ttcp
