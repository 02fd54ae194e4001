// SPDX-License-Identifier: Apache-2.0
#include "experiments/latency/odd_ones.hpp"

#include "measure/statistics.hpp"

#include <algorithm>

namespace affinityd::experiments {

namespace {

constexpr double odd_cpu = 1.2, slow_pair = 1.5;
constexpr double spreads = 8; ///< beyond the median: of normally spread values, more than five sigma
constexpr std::size_t least_peers = 3;

/// The distance at which the CPU has most of its pairs that stand out, or none.
std::optional<OddCpu> oddity_of(const topology::Latencies& latencies, const Distances& distances,
                                std::size_t place) {
    const auto& all = distances.all();
    std::vector<std::vector<double>> values(all.size());
    for (std::size_t other = 0; other < latencies.cpus().size(); ++other)
        if (const auto ns = latencies.at(place, other)) values[distances.of(place, other)].push_back(*ns);
    std::optional<OddCpu> found;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (values[i].size() < least_peers || all[i].pairs <= values[i].size()) continue;
        const double ns = *measure::median(values[i]);
        if (ns < odd_cpu * all[i].median || ns < all[i].median + spreads / 2 * all[i].spread) continue;
        if (!found || ns / all[i].median > found->ns / found->usual)
            found = OddCpu{latencies.cpus()[place], ns, all[i].median, all[i].name};
    }
    return found;
}

} // namespace

OddOnes find_odd_ones(const topology::Latencies& latencies, const Distances& distances) {
    OddOnes odd;
    const auto& cpus = latencies.cpus();
    CpuSet odd_cpus;
    for (std::size_t place = 0; place < cpus.size(); ++place)
        if (const auto found = oddity_of(latencies, distances, place)) {
            odd.cpus.push_back(*found);
            odd_cpus.insert(found->cpu);
        }
    std::ranges::sort(odd.cpus, std::greater{}, [](const OddCpu& one) { return one.ns / one.usual; });
    for (std::size_t b = 0; b < cpus.size(); ++b)
        for (std::size_t a = 0; a < b; ++a) {
            const auto ns = latencies.at(a, b);
            if (!ns || odd_cpus.contains(cpus[a]) || odd_cpus.contains(cpus[b])) continue;
            const auto& usual = distances.all()[distances.of(a, b)];
            if (*ns < slow_pair * usual.median || *ns < usual.median + spreads * usual.spread) continue;
            odd.pairs.push_back({{cpus[a], cpus[b]}, *ns, usual.median, usual.name});
        }
    std::ranges::sort(odd.pairs, std::greater{}, [](const SlowPair& one) { return one.ns / one.usual; });
    return odd;
}

} // namespace affinityd::experiments
