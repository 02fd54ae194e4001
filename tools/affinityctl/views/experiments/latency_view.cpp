// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/latency_view.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/table.hpp"

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;

std::string headline_of(const LatencyView& view) {
    auto text = "Latency between " + counted(view.latencies.cpus().size(), "CPU") + ", ns for one way";
    if (!view.source.empty()) text += " (" + printable(view.source) + ")";
    return text;
}

std::string method_of(const LatencyView& view) {
    const auto measured = view.latencies.measured(), all = view.latencies.pairs();
    std::string pairs = measured == all ? grouped(all) + (all == 1 ? " pair" : " pairs")
                                        : fmt::format("{} of {} pairs", grouped(measured), grouped(all));
    if (view.matrix == nullptr) return pairs;
    const auto& how = view.matrix->how;
    pairs += fmt::format(", each {} of {} round trips by {}; harmonic means", counted(how.samples, "sample"),
                         how.round_trips,
                         how.means == experiments::Means::cas ? "compare-and-swap" : "load and store");
    return pairs + fmt::format("; it took {:.{}f} s", view.seconds, view.seconds < 1 ? 2 : 1);
}

std::string groups_of(const affinityd::topology::LatencyLevel& level, std::size_t most) {
    std::string text;
    for (std::size_t i = 0; i < level.groups.size(); ++i) {
        if (i == most) return text + fmt::format(" and {} more", level.groups.size() - i);
        text += (text.empty() ? "" : "  ") + level.groups[i].to_list();
    }
    return text;
}

} // namespace affinityctl
