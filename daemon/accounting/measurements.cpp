// SPDX-License-Identifier: Apache-2.0
#include "accounting/measurements.hpp"

#include "base/counted.hpp"
#include "measure/result.hpp"
#include "measure/trend.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::accounting {

namespace {

using state::MeasurementRecord;

constexpr std::size_t remembered = 64; ///< enough for the trend's window
constexpr int most_at_once = 8;        ///< records that are written in one turn
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
    return fmt::format("{:.2f} Gbit/s over {}{} in {:.1f} s, {:.2f} CPU seconds, model {}",
                       record.bits_per_second / 1e9, record.path, note, record.seconds, record.cpu_seconds,
                       record.model);
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

Measurements::Measurements(std::string state_dir, std::chrono::seconds pause)
    : state_dir_(std::move(state_dir)), pause_(pause) {
    if (state_dir_.empty()) return;
    if (state::History::has_file(state_dir_))
        open();
    else if (::access(state_dir_.c_str(), W_OK) != 0 && errno != ENOENT)
        fail_to_open(fail("cannot write", state_dir_, errno).error());
}

void Measurements::let_go_if_moved() {
    if (!history_ || history_->is_in_place()) return;
    history_.reset();
    tell(Notice::Kind::history_unusable,
         "the measurement history was removed or replaced while it was in use: results go to a new one");
}

bool Measurements::open() {
    let_go_if_moved();
    if (history_ || state_dir_.empty()) return history_.has_value();
    if (failed_ && std::chrono::steady_clock::now() - *failed_ < pause_) return false;
    auto opened = state::History::open(state_dir_, std::time(nullptr));
    if (!opened) {
        fail_to_open(opened.error());
        return false;
    }
    if (auto remark = opened->remark(); !remark.empty())
        tell(Notice::Kind::history_set_aside, std::move(remark));
    history_ = std::move(opened->history);
    failed_.reset();
    if (!std::exchange(has_recalled_, true)) recall();
    return true;
}

/// What the file holds comes before what was measured while it could not be opened.
void Measurements::recall() {
    auto past = kept("ttcp");
    past.insert(past.end(), recent_.begin(), recent_.end());
    recent_ = std::move(past);
    forget_oldest();
}

/// After what could not be written before, if there is such. Returns its id, 0 if it is not written yet.
std::int64_t Measurements::write(const MeasurementRecord& record) {
    if (state_dir_.empty()) return 0;
    const bool is_due = unwritten_.empty() || unwritten_.size() >= remembered; // others wait for a pass
    unwritten_.push_back(record);
    const auto id = open() && is_due ? flush() : 0;
    if (unwritten_.size() > remembered) {
        unwritten_.pop_front();
        ++dropped_;
        tell(Notice::Kind::not_kept, "the oldest of the measurements that wait to be kept is lost");
    }
    return id;
}

/// One attempt at most fails, since each may wait for a lock, and then none is made for a while. Returns the
/// id of the last record, 0 if it is not written.
std::int64_t Measurements::flush() {
    if (failed_ && std::chrono::steady_clock::now() - *failed_ < pause_) return 0;
    failed_.reset();
    if (history_->is_read_only()) { // the file system may be another now
        history_.reset();
        if (!open()) return 0;
    }
    std::int64_t id = 0;
    for (int i = 0; i < most_at_once && !unwritten_.empty(); ++i, unwritten_.pop_front()) {
        const auto kept = history_->append(unwritten_.front());
        if (!kept) {
            failed_ = std::chrono::steady_clock::now();
            tell(Notice::Kind::not_kept, "the measurement is not kept yet: " + kept.error().to_string());
            return 0;
        }
        id = *kept;
    }
    return unwritten_.empty() ? id : 0;
}

void Measurements::write_rest() {
    if (!unwritten_.empty() && open()) flush();
}

void Measurements::finish() {
    failed_.reset();
    for (auto left = unwritten_.size() + 1; !unwritten_.empty() && unwritten_.size() < left;) {
        left = unwritten_.size();
        write_rest();
    }
    if (unwritten_.empty()) return;
    const auto lost = unwritten_.size();
    tell(Notice::Kind::not_kept,
         fmt::format("{} could not be kept and {} lost{}", counted(lost, "measurement"),
                     lost == 1 ? "is" : "are",
                     dropped_ == 0 ? "" : fmt::format("; before, {}", counted(dropped_, "other"))));
    unwritten_.clear();
}

void Measurements::forget_oldest() {
    if (recent_.size() > remembered) recent_.erase(recent_.begin(), recent_.end() - remembered);
}

void Measurements::fail_to_open(const Error& error) {
    if (!std::exchange(failed_, std::chrono::steady_clock::now()))
        tell(Notice::Kind::history_unusable, "no measurement is kept on disk: " + error.to_string());
}

void Measurements::tell(Notice::Kind kind, std::string text) { notices_.push_back({kind, std::move(text)}); }

std::vector<Notice> Measurements::take_notices() { return std::exchange(notices_, {}); }

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
    if (!history_) return {};
    auto records = history_->last(most_shown, kind);
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
    if (last.outcome == done && report.trend.trend == measure::Trend::down)
        report.summary += fmt::format("; REGRESSION: {:.1f} % below the median of the runs before",
                                      -100 * report.trend.change);
    return report;
}

HistoryReport Measurements::history(const std::string& kind) {
    let_go_if_moved();
    if (!history_ && !state_dir_.empty() && state::History::has_file(state_dir_)) open(); // an experiment's
    write_rest();
    const auto is_wanted = [&](const auto& record) { return kind.empty() || record.kind == kind; };
    HistoryReport report;
    report.kept = !state_dir_.empty() && (history_ || !failed_);
    if (history_) {
        if (auto read = history_->last(most_shown, kind, state::History::Read::figures))
            report.records = std::move(*read);
        else
            report.fault = read.error().to_string();
        std::ranges::copy_if(unwritten_, std::back_inserter(report.records), is_wanted);
    } else { // nothing is kept on disk: what this daemon has measured itself
        if (kind.empty() || kind == "ttcp") report.records = recent_;
        std::ranges::copy_if(unwritten_, std::back_inserter(report.records),
                             [&](const auto& record) { return record.kind != "ttcp" && is_wanted(record); });
    }
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

} // namespace affinityd::accounting
