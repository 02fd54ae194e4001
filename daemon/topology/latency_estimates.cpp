// SPDX-License-Identifier: Apache-2.0
// completed(): what was not measured, by what was measured between the same groups.
#include "topology/latency_levels.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace affinityd::topology {

namespace {

using GroupPair = std::pair<std::size_t, std::size_t>; ///< the lower first

/// The groups of one level, with the median of what was measured between each two, and within each.
class LevelMedians {
  public:
    LevelMedians(const Latencies& latencies, const LatencyLevel& level) {
        const auto& cpus = latencies.cpus();
        for (const unsigned cpu : cpus) {
            const auto group = std::ranges::find_if(
                level.groups, [cpu](const CpuSet& members) { return members.contains(cpu); });
            group_of_.push_back(static_cast<std::size_t>(group - level.groups.begin()));
        }
        for (std::size_t a = 0; a < cpus.size(); ++a)
            for (std::size_t b = 0; b < a; ++b)
                if (const auto ns = latencies.at(a, b)) values_[groups_of(a, b)].push_back(*ns);
        for (auto& [pair, values] : values_)
            std::ranges::sort(values);
    }
    /// By places; no value: nothing was measured between their groups.
    [[nodiscard]] std::optional<double> between(std::size_t a, std::size_t b) const {
        const auto found = values_.find(groups_of(a, b));
        if (found == values_.end()) return std::nullopt;
        return found->second[found->second.size() / 2];
    }

  private:
    [[nodiscard]] GroupPair groups_of(std::size_t a, std::size_t b) const {
        return std::minmax(group_of_[a], group_of_[b]);
    }
    std::vector<std::size_t> group_of_; ///< by place
    std::map<GroupPair, std::vector<double>> values_;
};

} // namespace

Latencies completed(const Latencies& latencies, const std::vector<LatencyLevel>& levels) {
    std::vector<LevelMedians> medians;
    for (const auto& level : levels)
        medians.emplace_back(latencies, level);
    Latencies result = latencies;
    const auto& cpus = latencies.cpus();
    for (std::size_t a = 0; a < cpus.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) {
            if (latencies.at(a, b)) continue;
            for (const auto& level : medians)
                if (const auto ns = level.between(a, b)) {
                    result.set(cpus[a], cpus[b], *ns);
                    break;
                }
        }
    return result;
}

} // namespace affinityd::topology
