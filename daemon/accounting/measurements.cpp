// SPDX-License-Identifier: Apache-2.0
#include "accounting/measurements.hpp"

#include "measure/result.hpp"

#include <algorithm>
#include <ctime>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace affinityd::accounting {

namespace {

using state::MeasurementRecord;

constexpr std::size_t remembered = 64; ///< enough for the trend's window
constexpr std::size_t most_shown = 1000;
const std::string done{measure::to_string(measure::Outcome::done)};

std::string model_of(const policy::PolicySet& policies) {
    if (policies.policies.empty()) return "none";
    const auto model = policies.policies.front().model;
    const bool same =
        std::ranges::all_of(policies.policies, [&](const auto& policy) { return policy.model == model; });
    return same ? std::string(to_string(model)) : "mixed";
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
    record.path = report.setup.path;
    record.seconds = report.seconds;
    record.bytes = report.bytes;
    record.bits_per_second = report.bits_per_second;
    record.cpu_seconds = cpu_seconds(report);
    record.ghz_per_gbps = report.ghz_per_gbps;
    record.detail = measure::to_json(report);
}

std::string summary_of(const MeasurementRecord& record) {
    if (record.outcome != done) return fmt::format("{}: {}", record.outcome, record.reason);
    const char* note = touches_nic_interrupts(record) ? "" : " (which tests no NIC)";
    return fmt::format("{}{}: {:.2f} Gbit/s in {:.1f} s, {:.2f} CPU seconds, model {}", record.path, note,
                       record.bits_per_second / 1e9, record.seconds, record.cpu_seconds, record.model);
}

std::string expectation(const measure::TrendReport& trend) {
    const auto range = fmt::format("{:.2f} to {:.2f} Gbit/s", trend.low / 1e9, trend.high / 1e9);
    switch (trend.trend) {
    case measure::Trend::unknown:
        return "not compared yet: too few runs";
    case measure::Trend::steady:
        return "as expected";
    case measure::Trend::up:
        return "above what was expected: " + range;
    case measure::Trend::down:
        return fmt::format("below what was expected: {}, {:.1f} % below the median", range,
                           -100 * trend.change);
    }
    return {};
}

/// Only like is compared with like: runs that came to their end over the same path to the same peer.
measure::TrendReport trend_of(const std::vector<MeasurementRecord>& records, const std::string& kind,
                              const std::string& path) {
    std::vector<double> rates;
    for (const auto& record : records)
        if (record.outcome == done && record.kind == kind && record.path == path)
            rates.push_back(record.bits_per_second);
    return measure::trend(rates);
}

std::vector<PathTrend> trends_of(const std::vector<MeasurementRecord>& records) {
    std::set<std::pair<std::string, std::string>> paths;
    for (const auto& record : records)
        if (record.outcome == done && record.kind == "ttcp") paths.emplace(record.kind, record.path);
    std::vector<PathTrend> trends;
    for (const auto& [kind, path] : paths)
        trends.push_back({kind, path, trend_of(records, kind, path)});
    return trends;
}

} // namespace

Measurements::Measurements(std::string state_dir)
    : state_dir_(std::move(state_dir)), is_kept_(!state_dir_.empty()) {
    if (is_kept_ && state::History::has_file(state_dir_)) recent_ = kept("ttcp");
    forget_oldest();
}

Result<state::History> Measurements::open() {
    auto opened = state::History::open(state_dir_, std::time(nullptr));
    is_kept_ = opened.has_value();
    if (!opened) return std::unexpected(opened.error());
    if (auto remark = opened->remark(); !remark.empty())
        tell(Notice::Kind::history_set_aside, std::move(remark));
    return std::move(opened->history);
}

/// Returns its id, 0 if it is not written.
std::int64_t Measurements::write(const MeasurementRecord& record) {
    if (state_dir_.empty()) return 0;
    auto history = open();
    const auto id = history ? history->append(record) : std::unexpected(history.error());
    if (!id) tell(Notice::Kind::not_kept, "the measurement is not kept: " + id.error().to_string());
    return id.value_or(0);
}

void Measurements::forget_oldest() {
    if (recent_.size() > remembered) recent_.erase(recent_.begin(), recent_.end() - remembered);
}

void Measurements::add(const measure::Run& run, const policy::PolicySet& policies) {
    MeasurementRecord record;
    record.time = std::time(nullptr);
    record.kind = "ttcp";
    record.model = model_of(policies);
    record.policies = names_of(policies);
    record.outcome =
        measure::to_string(run.outcome == measure::Outcome::done ? measure::Outcome::failed : run.outcome);
    record.reason = run.fault;
    if (const auto report = measure::parse_report(run.output))
        take_report(*report, record);
    else if (run.fault.empty())
        record.reason = "its output cannot be read: " + report.error().to_string();
    keep(std::move(record));
}

std::vector<MeasurementRecord> Measurements::kept(const std::string& kind) {
    if (state_dir_.empty() || !state::History::has_file(state_dir_)) return {};
    const auto history = open();
    auto records = history ? history->last(most_shown, kind) : std::unexpected(history.error());
    if (records) return std::move(*records);
    tell(Notice::Kind::history_unreadable,
         "the measurement history could not be read: " + records.error().to_string());
    return {};
}

void Measurements::keep(MeasurementRecord record) {
    record.id = write(record);
    if (record.kind != "ttcp") return;
    tell(Notice::Kind::measured, "measured: " + summary_of(record));
    recent_.push_back(record);
    tell_of_regression(record);
    forget_oldest();
}

void Measurements::tell_of_regression(const MeasurementRecord& record) {
    if (record.outcome != done) return;
    const auto now = trend_of(recent_, record.kind, record.path);
    if (now.trend != measure::Trend::down) return;
    // Told once, when it begins: the run before was not below the median already.
    const std::vector<MeasurementRecord> before(recent_.begin(), recent_.end() - 1);
    if (trend_of(before, record.kind, record.path).trend == measure::Trend::down) return;
    const auto last = std::ranges::find_if(before.rbegin(), before.rend(), [&](const auto& other) {
        return other.outcome == done && other.path == record.path;
    });
    const std::string change = last->policies == record.policies
                                   ? "the same policies as before"
                                   : "policies now: " + record.policies + ", before: " + last->policies;
    tell(Notice::Kind::regression, fmt::format("throughput over {} fell by {:.1f} %: {:.3f} Gbit/s, expected "
                                               "were {:.3f} to {:.3f} (median {:.3f}); {}",
                                               record.path, -100 * now.change, record.bits_per_second / 1e9,
                                               now.low / 1e9, now.high / 1e9, now.median / 1e9, change));
}

std::optional<MeasurementReport> Measurements::report() const {
    if (recent_.empty()) return std::nullopt;
    const auto& last = recent_.back();
    MeasurementReport report{last, summary_of(last), recent_.size(), trend_of(recent_, last.kind, last.path)};
    if (last.outcome == done) report.summary += ", " + expectation(report.trend);
    return report;
}

HistoryReport Measurements::history(const std::string& kind) const {
    HistoryReport report;
    Result<std::optional<HistoryReport>> read;
    if (!state_dir_.empty()) read = read_history(state_dir_, kind);
    if (read && *read) return std::move(**read);
    report.kept = is_kept_;
    if (!read) report.fault = read.error().to_string();
    if (kind.empty() || kind == "ttcp") report.records = recent_; // measured by this daemon
    report.trends = trends_of(report.records);
    return report;
}

Result<std::optional<HistoryReport>> read_history(const std::string& state_dir, const std::string& kind) {
    const auto history = state::History::open_to_read(state_dir);
    if (!history) return std::unexpected(history.error());
    if (!*history) return std::nullopt;
    auto records = (*history)->last(most_shown, kind, state::History::Read::figures);
    if (!records) return std::unexpected(records.error());
    HistoryReport report{.records = std::move(*records), .trends = {}, .kept = true, .fault = {}};
    report.trends = trends_of(report.records);
    return report;
}

Result<std::string> keep_experiment(const std::string& state_dir, const Experiment& experiment) {
    static_assert(most_experiment_detail <= state::most_detail);
    if (std::ranges::count(state::experiment_kinds, experiment.kind) == 0)
        return fail("there is no such experiment", experiment.kind);
    if (experiment.detail.size() > most_experiment_detail)
        return fail("the result is too long to be kept", experiment.kind);
    const auto now = std::time(nullptr);
    auto opened = state::History::open(state_dir, now);
    if (!opened) return std::unexpected(opened.error());
    state::MeasurementRecord record;
    record.time = now;
    record.kind = experiment.kind;
    record.outcome = measure::to_string(measure::Outcome::done);
    record.reason = experiment.summary;
    record.path = experiment.subject;
    record.seconds = experiment.seconds;
    record.detail = experiment.detail;
    auto remark = opened->remark();
    if (auto kept = opened->history.append(record); !kept) {
        if (!remark.empty()) kept.error().message += "; " + remark;
        return std::unexpected(kept.error());
    }
    return remark;
}

Result<std::optional<Experiment>> newest_experiment(const std::string& state_dir, std::string_view kind) {
    const auto history = state::History::open_to_read(state_dir);
    if (!history) return std::unexpected(history.error());
    if (!*history) return std::nullopt;
    auto records = (*history)->last(1, std::string(kind));
    if (!records) return std::unexpected(records.error());
    if (records->empty()) return std::nullopt;
    auto& record = records->back();
    return Experiment{.kind = std::move(record.kind),
                      .summary = std::move(record.reason),
                      .subject = std::move(record.path),
                      .seconds = record.seconds,
                      .detail = std::move(record.detail),
                      .time = record.time};
}

} // namespace affinityd::accounting
