// SPDX-License-Identifier: Apache-2.0
#include "topology/linkage.hpp"

#include "topology/latencies.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace affinityd::topology {

namespace {

/// Clusters while they are joined; a cluster has the place of one of its members.
class Clusters {
  public:
    explicit Clusters(const Latencies& latencies)
        : size_(latencies.cpus().size()), sums_(size_ * size_), counts_(size_ * size_), alive_(size_, true) {
        for (std::size_t a = 0; a < size_; ++a)
            for (std::size_t b = 0; b < size_; ++b)
                if (const auto ns = latencies.at(a, b)) {
                    sums_[a * size_ + b] = *ns;
                    counts_[a * size_ + b] = 1;
                }
    }

    [[nodiscard]] std::size_t first() const {
        return static_cast<std::size_t>(std::ranges::find(alive_, true) - alive_.begin());
    }
    [[nodiscard]] double between(std::size_t a, std::size_t b) const {
        const auto count = counts_[a * size_ + b];
        return count == 0 ? std::numeric_limits<double>::infinity() : sums_[a * size_ + b] / count;
    }
    /// Of those that are equally near `preferred`, else the first. There must be another one.
    [[nodiscard]] std::size_t nearest(std::size_t a, std::optional<std::size_t> preferred) const {
        auto best = preferred;
        for (std::size_t b = 0; b < size_; ++b)
            if (alive_[b] && b != a && (!best || between(a, b) < between(a, *best))) best = b;
        return *best;
    }
    /// `b` becomes part of `a`.
    void join(std::size_t a, std::size_t b) {
        for (std::size_t c = 0; c < size_; ++c) {
            if (!alive_[c] || c == a || c == b) continue;
            sums_[c * size_ + a] = sums_[a * size_ + c] += sums_[b * size_ + c];
            counts_[c * size_ + a] = counts_[a * size_ + c] += counts_[b * size_ + c];
        }
        alive_[b] = false;
    }

  private:
    std::size_t size_;
    std::vector<double> sums_;
    std::vector<unsigned> counts_;
    std::vector<bool> alive_;
};

} // namespace

std::vector<Merge> link_by_average(const Latencies& latencies) {
    std::vector<Merge> merges;
    const auto size = latencies.cpus().size();
    Clusters clusters(latencies);
    std::vector<std::size_t> chain; // each the nearest of the one before; its last two are each other's
    while (merges.size() + 1 < size) {
        if (chain.empty()) chain.push_back(clusters.first());
        const auto last = chain.back();
        const auto before =
            chain.size() > 1 ? std::optional<std::size_t>(chain[chain.size() - 2]) : std::nullopt;
        const auto nearest = clusters.nearest(last, before);
        if (nearest != before) {
            chain.push_back(nearest);
            continue;
        }
        const auto [a, b] = std::minmax(last, nearest);
        merges.push_back({clusters.between(a, b), a, b});
        clusters.join(a, b);
        chain.resize(chain.size() - 2);
    }
    std::ranges::stable_sort(merges, {}, &Merge::ns);
    return merges;
}

} // namespace affinityd::topology
