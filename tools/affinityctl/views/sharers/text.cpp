// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/sharers/text.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/sharers/labels.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityctl {

namespace {

constexpr std::size_t most_edges = 20, most_groups_shown = 12, most_members = 8;

std::string edges_text(const SharersReport& report, const Page& page) {
    Table table({"THREAD", "AND THREAD", "WAKES IT", "IS WOKEN", "SHARE", "GROUP"});
    std::size_t shown = 0, sharers = 0;
    const auto rate = [&](std::uint64_t times) {
        return rate_text(report.wakes.seconds > 0 ? static_cast<double>(times) / report.wakes.seconds : 0);
    };
    for (const auto& edge : report.graph.edges) {
        if (!edge.is_sharer || ++sharers > most_edges) continue;
        ++shown;
        table.add({label_of(report, edge.one), label_of(report, edge.other), rate(edge.one_wakes),
                   rate(edge.other_wakes), fmt::format("{:.0f}%", edge.share * 100),
                   edge.group == 0 ? "-" : std::to_string(edge.group)});
    }
    if (shown == 0) return {};
    auto text = "\n" + table.to_string(page);
    if (sharers > shown) text += fmt::format("and {} more pairs\n", grouped(sharers - shown));
    return text +
           wrapped("SHARE: of all wake-ups of one of the two, those by timers, devices and other programs "
                   "included, the part that comes from the other.",
                   "", page);
}

std::string groups_text(const SharersReport& report, const Page& page) {
    const auto& groups = report.graph.groups;
    if (groups.empty()) return {};
    Table table({"GROUP", "THREADS"});
    for (std::size_t i = 0; i < std::min(groups.size(), most_groups_shown); ++i) {
        std::string members;
        for (std::size_t at = 0; at < std::min(groups[i].size(), most_members); ++at)
            members += (at == 0 ? "" : ", ") + label_of(report, groups[i][at]);
        if (groups[i].size() > most_members)
            members += fmt::format(" and {} more", groups[i].size() - most_members);
        table.add({std::to_string(i + 1), members});
    }
    auto text = "\n" + table.to_string(page);
    if (groups.size() > most_groups_shown)
        text += fmt::format("and {} more groups\n", groups.size() - most_groups_shown);
    return text;
}

std::string policy_part(const SharersReport& report, const Page& page) {
    if (report.suggestion.policy.empty()) return {};
    return "\n" + bold("As a policy", page.color) + "\n" + report.suggestion.policy;
}

} // namespace

std::string sharers_text(const SharersReport& report, const Page& page) {
    std::string text = wrapped(printable(headline_of(report)), "", page);
    const auto edges = edges_text(report, page);
    text +=
        edges.empty()
            ? wrapped("No two of its threads wake each other so often that they belong together.", "", page)
            : edges;
    text += groups_text(report, page) + "\n";
    for (const auto& remark : remarks_of(report))
        text += wrapped(printable(remark), "", page);
    return text + policy_part(report, page);
}

} // namespace affinityctl
