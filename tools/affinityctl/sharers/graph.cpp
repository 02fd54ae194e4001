// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/graph.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace affinityctl {

namespace {

using WokenBy = std::map<Wakes::Thread, std::uint64_t>; ///< times that a thread was woken, by whomever

WokenBy all_wakes(const Wakes& wakes) {
    WokenBy woken;
    for (const auto& [id, thread] : wakes.threads)
        woken[id] = thread.by_interrupts + thread.by_others;
    for (const auto& [pair, times] : wakes.pairs)
        woken[pair.second] += times;
    return woken;
}

/// Each pair once.
std::vector<SharerEdge> edges_of(const Wakes& wakes) {
    std::map<std::pair<Wakes::Thread, Wakes::Thread>, SharerEdge> edges;
    for (const auto& [pair, times] : wakes.pairs) {
        const auto [one, other] = std::minmax(pair.first, pair.second);
        auto& edge = edges[{one, other}];
        edge.one = one;
        edge.other = other;
        (pair.first == one ? edge.one_wakes : edge.other_wakes) += times;
    }
    std::vector<SharerEdge> list;
    for (auto& [pair, edge] : edges)
        list.push_back(edge);
    return list;
}

double fraction(std::uint64_t of, std::uint64_t all) {
    return all == 0 ? 0 : static_cast<double>(of) / static_cast<double>(all);
}

/// Threads that hang together: each knows a member of its group, in the end the lowest.
class Clusters {
  public:
    Wakes::Thread find(const Wakes::Thread& thread) {
        auto at = thread;
        for (auto above = above_.find(at); above != above_.end() && above->second != at;
             above = above_.find(at))
            at = above->second;
        above_[thread] = at;
        return at;
    }
    void join(const Wakes::Thread& one, const Wakes::Thread& other) {
        const auto [low, high] = std::minmax({find(one), find(other)});
        above_[high] = low;
    }

  private:
    std::map<Wakes::Thread, Wakes::Thread> above_;
};

void group_threads(SharerGraph& graph, const SharerLimits& limits) {
    std::map<Wakes::Thread, std::uint64_t> strongest;
    for (const auto& edge : graph.edges)
        if (edge.is_sharer)
            for (const auto& thread : {edge.one, edge.other})
                strongest[thread] = std::max(strongest[thread], edge.wakes());
    Clusters clusters;
    const auto binds = [&](const SharerEdge& edge) {
        const auto most = std::max(strongest[edge.one], strongest[edge.other]);
        return edge.is_sharer && fraction(edge.wakes(), most) >= limits.part_of_strongest;
    };
    for (const auto& edge : graph.edges)
        if (binds(edge)) clusters.join(edge.one, edge.other);
    std::map<Wakes::Thread, std::vector<Wakes::Thread>> members;
    for (const auto& [thread, most] : strongest)
        members[clusters.find(thread)].push_back(thread);
    std::map<Wakes::Thread, unsigned> numbers;
    // Edges are in the order of their strength: so are the groups, by their strongest edge.
    for (auto& edge : graph.edges) {
        const auto root = clusters.find(edge.one);
        if (!edge.is_sharer || root != clusters.find(edge.other)) continue;
        auto [number, is_new] = numbers.try_emplace(root, graph.groups.size() + 1);
        if (is_new) graph.groups.push_back(members[root]);
        edge.group = number->second;
    }
}

} // namespace

SharerGraph graph_of(const Wakes& wakes, const SharerLimits& limits) {
    SharerGraph graph;
    graph.edges = edges_of(wakes);
    const auto woken = all_wakes(wakes);
    const auto woken_times = [&](const Wakes::Thread& thread) {
        const auto found = woken.find(thread);
        return found == woken.end() ? 0 : found->second;
    };
    for (auto& edge : graph.edges) {
        edge.rate = wakes.seconds > 0 ? static_cast<double>(edge.wakes()) / wakes.seconds : 0;
        edge.share = std::max(fraction(edge.other_wakes, woken_times(edge.one)),
                              fraction(edge.one_wakes, woken_times(edge.other)));
        // Seen so often: of a single one that stands for many, nothing follows.
        const auto seen = edge.wakes() / std::max<std::uint64_t>(wakes.heaviest, 1);
        edge.is_sharer =
            seen >= limits.least_wakes && edge.rate >= limits.least_rate && edge.share >= limits.least_share;
        graph.wakes += edge.wakes();
        if (edge.is_sharer) continue;
        ++graph.weak_pairs;
        graph.weak_wakes += edge.wakes();
    }
    std::ranges::stable_sort(graph.edges, std::greater{}, &SharerEdge::wakes);
    group_threads(graph, limits);
    return graph;
}

} // namespace affinityctl
