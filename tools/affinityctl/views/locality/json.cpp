// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/locality/json.hpp"

#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/locality/labels.hpp"

namespace affinityctl {

namespace locality = affinityd::locality;

using nlohmann::json;

namespace {

json shares_json(const locality::NearShares& shares) {
    return {{"cpu", shares.cpu}, {"core", shares.core}, {"llc", shares.llc}, {"node", shares.node}};
}

json worker_json(const locality::WorkerFigures& worker) {
    json value{{"reads", worker.reads}, {"unknown", worker.unknown}};
    const bool is_any = worker.reads > worker.unknown;
    value["same"] = is_any ? shares_json(worker.same) : json();
    value["chance"] = is_any ? shares_json(worker.chance) : json();
    return value;
}

json count_json(const locality::ReadCount& count) {
    return {{"pid", count.pid},
            {"network_namespace", count.network_space},
            {"ifindex", count.device},
            {"napi_id", count.napi},
            {"arrival", or_null(count.arrival)},
            {"cpu", count.reader},
            {"protocol", count.protocol},
            {"reads", count.reads}};
}

} // namespace

json locality_json(const LocalityReport& report) {
    auto processes = json::array();
    for (const auto& worker : report.figures.workers) {
        auto value = worker_json(worker);
        value["pid"] = worker.pid;
        value["name"] = worker.name;
        processes.push_back(std::move(value));
    }
    auto arrivals = json::array();
    for (const auto& place : report.arrivals)
        arrivals.push_back({{"cpu", place.cpu},
                            {"reads", place.reads},
                            {"sources", place.sources},
                            {"interrupt", place.is_interrupt}});
    auto counts = json::array();
    for (const auto& count : report.seen.counts)
        counts.push_back(count_json(count));
    const auto advice = advice_for(report.facts);
    return {{"subject", report.subject},
            {"seconds", report.seen.seconds},
            {"all_protocols", report.seen.has_other_protocols},
            {"lost", report.seen.lost},
            {"of_unknown", report.seen.of_unknown},
            {"in_softirq", report.seen.in_softirq},
            {"all", worker_json(report.figures.total)},
            {"processes", std::move(processes)},
            {"arrivals", std::move(arrivals)},
            {"listeners", report.facts.listeners},
            {"advice", word_of(advice)},
            {"advice_for", or_null(report.busiest)},
            {"text", closing_of(report)},
            {"remarks", remarks_of(report)},
            {"counts", std::move(counts)}};
}

} // namespace affinityctl
