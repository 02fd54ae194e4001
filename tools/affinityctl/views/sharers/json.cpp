// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/sharers/json.hpp"

#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/sharers/labels.hpp"

#include <map>

namespace affinityctl {

using nlohmann::json;

namespace {

json woken_json(const Wakes::Thread& id, const WokenThread& thread, std::optional<unsigned> group) {
    return {{"tid", id.tid},
            {"start_time", id.start_time},
            {"name", thread.name},
            {"index", or_null(thread.index)},
            {"woken_by_interrupts", thread.by_interrupts},
            {"woken_by_others", thread.by_others},
            {"numa_group", or_null(thread.pages_group)},
            {"group", or_null(group)}};
}

json edge_json(const SharerEdge& edge) {
    return {{"one", edge.one.tid},
            {"other", edge.other.tid},
            {"one_start_time", edge.one.start_time},
            {"other_start_time", edge.other.start_time},
            {"one_wakes", edge.one_wakes},
            {"other_wakes", edge.other_wakes},
            {"per_second", edge.rate},
            {"share", edge.share},
            {"sharers", edge.is_sharer},
            {"group", edge.group == 0 ? json() : json(edge.group)}};
}

json group_json(const std::vector<Wakes::Thread>& members, const GroupRule& rule) {
    auto threads = json::array();
    for (const auto& member : members)
        threads.push_back(member.tid);
    json value{{"threads", std::move(threads)}, {"level", rule.level}, {"names", json()}, {"index", json()}};
    value["has_rule"] = rule.choice.has_value();
    if (!rule.choice) return value;
    if (!rule.choice->names.empty()) value["names"] = rule.choice->names;
    if (const auto& index = rule.choice->index) value["index"] = {index->first, index->second};
    return value;
}

} // namespace

json sharers_json(const SharersReport& report) {
    std::map<Wakes::Thread, unsigned> group_of;
    auto groups = json::array();
    for (std::size_t i = 0; i < report.graph.groups.size(); ++i) {
        for (const auto& member : report.graph.groups[i])
            group_of[member] = static_cast<unsigned>(i + 1);
        groups.push_back(group_json(report.graph.groups[i], report.suggestion.rules[i]));
    }
    auto threads = json::array();
    for (const auto& [id, thread] : report.wakes.threads) {
        const auto group = group_of.find(id);
        threads.push_back(
            woken_json(id, thread, group == group_of.end() ? std::nullopt : std::optional(group->second)));
    }
    auto pairs = json::array();
    for (const auto& edge : report.graph.edges)
        pairs.push_back(edge_json(edge));
    return {{"pid", report.process.pid},
            {"name", report.process.name},
            {"unit", or_null(report.process.unit)},
            {"seconds", report.wakes.seconds},
            {"ended", report.has_ended},
            {"wakeups", report.graph.wakes},
            {"sampled", report.wakes.heaviest > 1},
            {"lost", report.wakes.lost},
            {"threads", std::move(threads)},
            {"pairs", std::move(pairs)},
            {"groups", std::move(groups)},
            {"policy", or_null(report.suggestion.policy)},
            {"remarks", remarks_of(report)}};
}

} // namespace affinityctl
