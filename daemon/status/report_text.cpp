// SPDX-License-Identifier: Apache-2.0
#include "status/report_text.hpp"

#include "status/json.hpp"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace affinityd::status {

namespace {

using nlohmann::json;

json number(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

json past_json(const accounting::PastCost& past) {
    return {{"model", past.model},
            {"ended_at", past.ended_at},
            {"bytes", past.bytes},
            {"cpu_seconds", past.cpu_seconds},
            {"cpu_seconds_per_gb", number(accounting::per_gigabyte(past.cpu_seconds, past.bytes))}};
}

json cost_json(const accounting::PolicyCost& cost) {
    json nics = json::array();
    for (const auto& nic : cost.nics)
        nics.push_back({{"nic", nic.nic}, {"bytes", nic.bytes}, {"shared", nic.shared}});
    return {{"policy", cost.policy},
            {"model", cost.model},
            {"seconds", cost.seconds},
            {"nics", std::move(nics)},
            {"bytes", cost.bytes},
            {"cpu_seconds", cost.cpu_seconds},
            {"cpu_seconds_per_gb", number(accounting::per_gigabyte(cost.cpu_seconds, cost.bytes))},
            {"before", cost.before ? past_json(*cost.before) : json(nullptr)}};
}

json trend_json(const measure::TrendReport& trend) {
    return {{"direction", measure::to_string(trend.trend)},
            {"median", trend.median},
            {"low", trend.low},
            {"high", trend.high},
            {"change", trend.change}};
}

json record_json(const state::MeasurementRecord& record) {
    json value{{"id", record.id},
               {"time", record.time},
               {"kind", record.kind},
               {"outcome", record.outcome},
               {"path", record.path},
               {"model", record.model},
               {"policies", record.policies},
               {"seconds", record.seconds},
               {"bytes", record.bytes},
               {"bits_per_second", record.bits_per_second},
               {"cpu_seconds", record.cpu_seconds}};
    if (record.kind == "ttcp" && !record.path.empty())
        value["touches_nic_interrupts"] = accounting::touches_nic_interrupts(record);
    if (!record.reason.empty()) value["reason"] = record.reason;
    if (record.ghz_per_gbps) value["ghz_per_gbps"] = *record.ghz_per_gbps;
    return value;
}

} // namespace

std::string to_text(const accounting::CostReport& report) {
    json list = json::array();
    for (const auto& cost : report)
        list.push_back(cost_json(cost));
    return dump(list);
}

std::string to_text(const std::optional<accounting::MeasurementReport>& report) {
    if (!report) return "null";
    return dump({{"last", record_json(report->last)},
                 {"summary", report->summary},
                 {"runs", report->runs},
                 {"trend", trend_json(report->trend)}});
}

std::string to_text(const accounting::HistoryReport& report) {
    json list = json::array();
    for (const auto& record : report.records)
        list.push_back(record_json(record));
    json trends = json::array();
    for (const auto& path : report.trends) {
        trends.push_back(trend_json(path.trend));
        trends.back()["kind"] = path.kind;
        trends.back()["path"] = path.path;
    }
    json value{{"records", std::move(list)}, {"trends", std::move(trends)}, {"kept", report.kept}};
    if (!report.fault.empty()) value["fault"] = report.fault;
    return dump(value);
}

std::string to_text(const LocalStatus& local) { return dump(to_json(local)); }

std::string to_string(const LocalStatus& local) {
    return fmt::format("{:.0f} % same core, {:.0f} % by chance ({} reads counted)", 100 * local.same.core,
                       100 * local.chance.core, local.samples);
}

} // namespace affinityd::status
