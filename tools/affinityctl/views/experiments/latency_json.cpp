// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/latency_json.hpp"

#include "affinityctl/views/json_text.hpp"
#include "experiments/latency/group_names.hpp"

namespace affinityctl {

namespace experiments = affinityd::experiments;
using affinityd::CpuSet;
using nlohmann::json;

namespace {

json levels_json(const LatencyView& view) {
    json levels = json::array();
    for (const auto& level : view.reading.levels) {
        json groups = json::array();
        for (const auto& group : level.groups)
            groups.push_back(group.to_list());
        levels.push_back({{"ns", level.ns}, {"groups", std::move(groups)}});
    }
    return levels;
}

/// What the topology calls each group, in the order of the levels.
json names_json(const LatencyView& view) {
    CpuSet measured;
    for (const unsigned cpu : view.latencies.cpus())
        measured.insert(cpu);
    json names = json::array();
    for (const auto& level : view.reading.levels) {
        json of_level = json::array();
        for (const auto& group : level.groups)
            of_level.push_back(view.topology == nullptr
                                   ? json()
                                   : json(experiments::name_of_group(*view.topology, group, measured)));
        names.push_back(std::move(of_level));
    }
    return names;
}

} // namespace

json latency_json(const LatencyView& view) {
    auto document = json::parse(view.matrix != nullptr ? experiments::to_json(*view.matrix)
                                                       : affinityd::topology::to_json(view.latencies));
    document["source"] = view.source;
    document["pairs"] = {{"measured", view.latencies.measured()}, {"possible", view.latencies.pairs()}};
    document["levels"] = levels_json(view);
    document["level_names"] = view.reading.level_names;
    document["group_names"] = names_json(view);
    document["distances"] = json::array();
    for (const auto& one : view.reading.distances)
        document["distances"].push_back({{"name", one.name},
                                         {"pairs", one.pairs},
                                         {"median", one.median},
                                         {"least", one.least},
                                         {"most", one.most}});
    document["findings"] = view.reading.findings;
    document["meaning"] = view.reading.meaning;
    document["remarks"] = view.remarks;
    if (view.matrix != nullptr) document["seconds"] = view.seconds;
    return document;
}

std::string latency_detail(const LatencyView& view, std::size_t most) {
    auto document = latency_json(view);
    auto text = dump(document);
    if (text.size() <= most) return text;
    for (const char* key : {"low", "high", "median"})
        document.erase(key);
    return dump(document);
}

} // namespace affinityctl
