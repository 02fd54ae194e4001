// SPDX-License-Identifier: Apache-2.0
#include "topology/latency_levels.hpp"

#include "topology/topology.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace affinityd::topology {

namespace {

/// How much farther the next CPUs have to be than those of the group: more than what the stops of one mesh or
/// ring differ by, less than any step from one cache, die or socket to the next that was ever measured.
constexpr double clear = 1.15;
constexpr double most_unclear = 0.05;  ///< part of the CPUs in groups that need not be clearly nearer
constexpr double least_grouped = 0.25; ///< part of the CPUs that have mates, at least

using Members = std::vector<std::size_t>; ///< places in Latencies::cpus(), ascending
using Partition = std::vector<Members>;   ///< by first member; every place is in one

std::optional<double> median_of(std::vector<double>& values) {
    if (values.empty()) return std::nullopt;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    if (values.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::optional<double> median_to(const Latencies& latencies, std::size_t place, const Members& members,
                                std::vector<double>& room) {
    room.clear();
    for (const auto other : members)
        if (const auto ns = latencies.at(place, other)) room.push_back(*ns);
    return median_of(room);
}

/// Two clusters becoming one, each known by one of its members (a place in Latencies::cpus()).
struct Merge {
    double ns = 0; ///< mean of what was measured between them; infinity: nothing was
    std::size_t a = 0, b = 0;
};

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
    /// If several are equally near: `preferred`, else the first. There must be another one.
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

/// Average linkage of all CPUs, the nearest clusters first: one merge less than there are CPUs. Pairs that
/// were not measured count for nothing. By the chain of nearest neighbours, in time and memory of the order
/// of the matrix. Source: Muellner, "Modern hierarchical, agglomerative clustering algorithms", 2011, 3.2.
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

/// What the first merges make of all CPUs.
Partition partition_after(const std::vector<Merge>& merges, std::size_t count, std::size_t size) {
    std::vector<std::size_t> parent(size);
    std::iota(parent.begin(), parent.end(), 0);
    const auto root_of = [&parent](std::size_t place) {
        while (parent[place] != place)
            place = parent[place] = parent[parent[place]];
        return place;
    };
    for (std::size_t i = 0; i < count; ++i) {
        const auto [low, high] = std::minmax({root_of(merges[i].a), root_of(merges[i].b)});
        parent[high] = low; // so that the root of a group is its first member
    }
    std::vector<Members> groups(size);
    for (std::size_t place = 0; place < size; ++place)
        groups[root_of(place)].push_back(place);
    std::erase_if(groups, [](const Members& group) { return group.empty(); });
    return groups;
}

bool has_mates(const Members& group) { return group.size() > 1; }

/// CPU by CPU, because a few noisy pairs must neither make groups nor break them.
bool is_clear(const Latencies& latencies, const Partition& partition) {
    std::size_t grouped = 0, unclear = 0;
    std::vector<double> room;
    for (const auto& group : partition) {
        if (!has_mates(group)) continue;
        for (const auto place : group) {
            const auto within = median_to(latencies, place, group, room);
            if (!within) continue;
            ++grouped;
            unclear += std::ranges::any_of(partition, [&](const Members& other) {
                if (&other == &group) return false;
                const auto outside = median_to(latencies, place, other, room);
                return outside && *outside < clear * *within;
            });
        }
    }
    return static_cast<double>(grouped) >= least_grouped * static_cast<double>(latencies.cpus().size()) &&
           static_cast<double>(unclear) <= most_unclear * static_cast<double>(grouped);
}

/// Fine to coarse: where the merges leap, and what stands then is clear. With a single group that has mates,
/// all others are odd ones, and the machine is uniform but for them.
std::vector<Partition> clear_partitions(const Latencies& latencies) {
    const auto merges = link_by_average(latencies);
    std::vector<Partition> found;
    for (std::size_t count = 1; count < merges.size(); ++count) {
        if (!(merges[count].ns >= clear * merges[count - 1].ns)) continue;
        auto partition = partition_after(merges, count, latencies.cpus().size());
        if (std::ranges::count_if(partition, has_mates) > 1 && is_clear(latencies, partition))
            found.push_back(std::move(partition));
    }
    return found;
}

std::vector<std::size_t> groups_by_place(const Partition& partition, std::size_t size) {
    std::vector<std::size_t> group_of(size);
    for (std::size_t group = 0; group < partition.size(); ++group)
        for (const auto place : partition[group])
            group_of[place] = group;
    return group_of;
}

/// CPUs whose group in `coarse` holds several groups with mates of `fine`.
std::size_t joined(const Partition& fine, const Partition& coarse, std::size_t size) {
    const auto group_of = groups_by_place(coarse, size);
    std::vector<std::size_t> parts(coarse.size());
    for (const auto& group : fine)
        if (has_mates(group)) ++parts[group_of[group.front()]];
    std::size_t count = 0;
    for (std::size_t group = 0; group < coarse.size(); ++group)
        if (parts[group] > 1) count += coarse[group].size();
    return count;
}

/// Without those that only lack a few CPUs of the next coarser one, and those that join groups on a part of
/// the machine only.
std::vector<Partition> distinct(std::vector<Partition> found, std::size_t size) {
    std::vector<Partition> levels;
    for (auto& partition : found) {
        const auto count = levels.empty() ? size : joined(levels.back(), partition, size);
        if (count == 0)
            levels.back() = std::move(partition);
        else if (2 * count > size)
            levels.push_back(std::move(partition));
    }
    return levels;
}

double typical_ns(const Latencies& latencies, const Partition& partition, const Partition* finer) {
    const auto size = latencies.cpus().size();
    const auto group_of = groups_by_place(partition, size);
    const auto finer_of = finer == nullptr ? std::vector<std::size_t>() : groups_by_place(*finer, size);
    std::vector<double> values;
    for (std::size_t a = 0; a < size; ++a)
        for (std::size_t b = 0; b < a; ++b) {
            if (group_of[a] != group_of[b] || (finer != nullptr && finer_of[a] == finer_of[b])) continue;
            if (const auto ns = latencies.at(a, b)) values.push_back(*ns);
        }
    return median_of(values).value_or(0);
}

} // namespace

std::vector<LatencyLevel> latency_levels(const Latencies& latencies) {
    const auto& cpus = latencies.cpus();
    const auto partitions = distinct(clear_partitions(latencies), cpus.size());
    std::vector<LatencyLevel> levels;
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        LatencyLevel level{typical_ns(latencies, partitions[i], i == 0 ? nullptr : &partitions[i - 1]), {}};
        for (const auto& group : partitions[i]) {
            CpuSet set;
            for (const auto place : group)
                set.insert(cpus[place]);
            level.groups.push_back(std::move(set));
        }
        levels.push_back(std::move(level));
    }
    return levels;
}

std::optional<LatencyLevel> measured_level(const Latencies& latencies, const Topology& topology) {
    const auto has_cores = [&](const CpuSet& group) {
        return !topology.core_of(group.first()).contains(group);
    };
    for (auto& level : latency_levels(latencies))
        if (std::ranges::any_of(level.groups, has_cores)) return std::move(level);
    const auto& cpus = latencies.cpus();
    Members all(cpus.size());
    std::iota(all.begin(), all.end(), 0);
    LatencyLevel whole{typical_ns(latencies, {all}, nullptr), {{}}};
    for (const unsigned cpu : cpus)
        whole.groups.front().insert(cpu);
    return whole.ns > 0 ? std::optional(std::move(whole)) : std::nullopt;
}

} // namespace affinityd::topology
