// SPDX-License-Identifier: Apache-2.0
#include "app/measurements.hpp"

#include "app/json.hpp"
#include "measure/result.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using nlohmann::json;
using state::MeasurementRecord;

constexpr std::size_t remembered = 64; ///< enough for the trend's window

std::string model_of(const policy::PolicySet& policies) {
    constexpr std::array names{"none", "irq", "process", "full"};
    if (policies.policies.empty()) return "none";
    const auto model = policies.policies.front().model;
    const bool same = std::ranges::all_of(policies.policies, [&](const auto& policy) { return policy.model == model; });
    return same ? names[static_cast<std::size_t>(model)] : "mixed";
}

std::string names_of(const policy::PolicySet& policies) {
    std::string names;
    for (const auto& policy : policies.policies)
        names += (names.empty() ? "" : ",") + policy.name;
    return names;
}

double cpu_seconds(const measure::Report& report) {
    double sum = 0;
    for (const auto& end : {report.transmitter, report.receiver})
        if (end) sum += end->user_seconds + end->system_seconds;
    return sum;
}

void take_report(const measure::Report& report, MeasurementRecord& record) {
    record.outcome = measure::to_string(report.outcome);
    record.reason = report.reason;
    record.path = report.path;
    record.seconds = report.seconds;
    record.bytes = report.bytes;
    record.bits_per_second = report.bits_per_second;
    record.cpu_seconds = cpu_seconds(report);
    record.ghz_per_gbps = report.ghz_per_gbps;
    record.detail = measure::to_json(report);
}

std::string summary_of(const MeasurementRecord& record) {
    if (record.outcome != "done") return fmt::format("{}: {}", record.outcome, record.reason);
    const char* note = record.path == "loopback" ? " (loopback: does not touch NIC interrupts)" : "";
    return fmt::format("{:.2f} Gbit/s over {}{} in {:.1f} s, {:.2f} CPU seconds, model {}", record.bits_per_second / 1e9, record.path,
                       note, record.seconds, record.cpu_seconds, record.model);
}

json record_json(const MeasurementRecord& record) {
    json value{{"time", record.time},
               {"kind", record.kind},
               {"outcome", record.outcome},
               {"path", record.path},
               {"touches_nic_interrupts", record.path != "loopback"},
               {"model", record.model},
               {"policies", record.policies},
               {"seconds", record.seconds},
               {"bytes", record.bytes},
               {"bits_per_second", record.bits_per_second},
               {"cpu_seconds", record.cpu_seconds}};
    if (!record.reason.empty()) value["reason"] = record.reason;
    if (record.ghz_per_gbps) value["ghz_per_gbps"] = *record.ghz_per_gbps;
    return value;
}

} // namespace

Measurements::Measurements(const std::string& state_dir, Log& log) : log_(log) {
    if (state_dir.empty()) return;
    auto opened = state::History::open(state_dir, std::time(nullptr));
    if (!opened) {
        log_.warn("measurements are kept until the end only: " + opened.error().to_string());
        return;
    }
    if (!opened->set_aside.empty())
        log_.warn(fmt::format("the measurement history could not be used ({}), it is at {} and a new one begins", opened->why, opened->set_aside));
    history_ = std::move(opened->history);
    if (auto last = history_->last(remembered, "ttcp")) recent_ = std::move(*last);
    else log_.warn("the measurement history could not be read: " + last.error().to_string());
}

void Measurements::add(const std::string& output, const std::string& fault, const policy::PolicySet& policies) {
    MeasurementRecord record;
    record.time = std::time(nullptr);
    record.kind = "ttcp";
    record.model = model_of(policies);
    record.policies = names_of(policies);
    record.outcome = measure::to_string(measure::Outcome::failed);
    record.reason = fault;
    if (const auto report = measure::parse_report(output)) take_report(*report, record);
    else if (fault.empty()) record.reason = "its output cannot be read: " + report.error().to_string();
    keep(std::move(record));
}

void Measurements::keep(MeasurementRecord record) {
    log_.info("measured: " + summary_of(record));
    if (history_)
        if (const auto kept = history_->append(record); !kept) log_.error("the measurement is not kept: " + kept.error().to_string());
    recent_.push_back(std::move(record));
    if (recent_.size() > remembered) recent_.erase(recent_.begin());
}

std::string Measurements::to_json() const {
    if (recent_.empty()) return "null";
    const auto& last = recent_.back();
    // Only what is alike can be compared: the same way to the same peer.
    std::vector<double> rates;
    for (const auto& record : recent_)
        if (record.outcome == last.outcome && record.path == last.path) rates.push_back(record.bits_per_second);
    const auto trend = measure::trend(rates);
    return dump({{"last", record_json(last)},
                 {"summary", summary_of(last)},
                 {"runs", recent_.size()},
                 {"trend",
                  {{"direction", measure::to_string(trend.trend)}, {"median", trend.median}, {"low", trend.low}, {"high", trend.high}, {"change", trend.change}}}});
}

} // namespace affinityd::app
