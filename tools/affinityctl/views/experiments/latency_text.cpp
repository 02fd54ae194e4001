// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/latency_text.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/experiments/latency_map.hpp"
#include "affinityctl/views/table.hpp"

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;

namespace {

constexpr std::size_t few_pairs = 12, most_groups_told = 12;

std::string ns_text(double ns) { return ns < 100 ? fmt::format("{:.1f}", ns) : fmt::format("{:.0f}", ns); }

/// Each pair where they are few: with its interval.
std::string pair_table(const experiments::LatencyMatrix& matrix, const Page& page) {
    Table table({"CPUS", "NS", "95 % INTERVAL", "MEDIAN"});
    for (const auto& one : matrix.pairs)
        table.add({fmt::format("{} and {}", one.pair.a, one.pair.b), ns_text(one.ns),
                   one.low && one.high ? ns_text(*one.low) + " to " + ns_text(*one.high) : "too few samples",
                   ns_text(one.median)});
    return table.empty() ? std::string() : table.to_string(page) + "\n";
}

std::string distance_table(const LatencyView& view, const Page& page) {
    Table table({"DISTANCE", "PAIRS", "MEDIAN NS", "LEAST", "MOST"});
    for (const auto& one : view.reading.distances)
        table.add({one.name, grouped(one.pairs), ns_text(one.median), ns_text(one.least), ns_text(one.most)});
    return table.to_string(page) + "\n";
}

std::string level_table(const LatencyView& view, const Page& page) {
    const auto& levels = view.reading.levels;
    if (levels.empty())
        return wrapped(view.reading.is_uniform
                           ? view.reading.not_measured > 0
                                 ? "No groups were found: where it was measured, CPUs are about as near to "
                                   "each other."
                                 : "No groups: all CPUs are about as near to each other."
                           : "No groups: some CPUs are much nearer to each other than others, but they form "
                             "no groups with a clear step from one to the next.",
                       "", page) +
               "\n";
    Table table({"LEVEL", "NS", "GROUPS", "THE TOPOLOGY SAYS", "CPUS"});
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const auto& name = view.reading.level_names[i];
        table.add({std::to_string(i + 1), ns_text(levels[i].ns), grouped(levels[i].groups.size()),
                   !name.empty()              ? name
                   : view.topology == nullptr ? "-"
                                              : "nothing of them",
                   groups_of(levels[i], most_groups_told)});
    }
    return table.to_string(page) + "\n";
}

} // namespace

std::string latency_text(const LatencyView& view, const Page& page) {
    auto text = bold(headline_of(view), page.color) + "\n" + wrapped(method_of(view), "  ", page) + "\n";
    if (view.matrix != nullptr && view.matrix->pairs.size() <= few_pairs)
        text += pair_table(*view.matrix, page);
    if (view.latencies.measured() > 1) {
        text += distance_table(view, page) + level_table(view, page) +
                latency_map_text(view.latencies, view.reading.levels, page) + "\n";
    }
    for (const auto& finding : view.reading.findings)
        text += wrapped(finding, "* ", page);
    for (const auto& remark : view.remarks)
        text += wrapped(remark, "* ", page);
    return text + wrapped(view.reading.meaning, "", page);
}

} // namespace affinityctl
