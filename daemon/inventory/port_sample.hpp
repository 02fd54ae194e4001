// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

namespace affinityd::inventory {

/// Connections that were asked for their local port, of those that came to the epolls of listeners: what came
/// to one of these is estimated from them.
struct PortSample {
    std::size_t known = 0; ///< connections whose port is known
    std::size_t hits = 0;  ///< of them, those that have the listener's
    double spread = 0;     ///< how much chance counts, see variance(); grows with what was not asked
    double unknown = 0;    ///< squares of the numbers of which nothing is known: all count as the listener's

    /// `known` of `all` were asked, and `hits` have the port.
    static PortSample of(std::size_t all, std::size_t known, std::size_t hits) {
        const auto n = static_cast<double>(all), m = static_cast<double>(known);
        if (known == 0) return {0, 0, 0, n * n};
        return {known, hits, n * std::max(n - m, 0.0) / m, 0};
    }
    PortSample& operator+=(const PortSample& other) {
        known += other.known;
        hits += other.hits;
        spread += other.spread;
        unknown += other.unknown;
        return *this;
    }
    /// Of the estimates all * hits / known, together: 0 where all were asked, or none has another port, or
    /// nothing is known of any. Source: sampling without replacement (Cochran, Sampling Techniques, 3rd
    /// edition, section 3.2).
    [[nodiscard]] double variance() const {
        if (known == 0) return 0;
        const auto part = static_cast<double>(hits) / static_cast<double>(known);
        return part * (1 - part) * spread + (1 - part) * (1 - part) * unknown;
    }
    friend bool operator==(const PortSample&, const PortSample&) = default;
};

} // namespace affinityd::inventory
