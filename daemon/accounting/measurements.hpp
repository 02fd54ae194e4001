// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/measurement_report.hpp"
#include "accounting/notice.hpp"
#include "measure/run.hpp"
#include "policy/policy.hpp"
#include "state/history.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::accounting {

/// The results of measurements: kept over restarts where there is a history, and compared with the runs
/// before.
class Measurements {
  public:
    /// Opens the history in the state directory if there is one; a new one begins with the first record,
    /// since SQLite takes more than 1 MiB of memory. Where it cannot be opened or written (a full disk, a
    /// lock), the last 64 results wait for that; it is tried again after each `pause`, and once more by
    /// `finish`. Where it is removed while it is open, a new one begins.
    explicit Measurements(std::string state_dir, std::chrono::seconds pause = std::chrono::minutes(1));
    ~Measurements() { finish(); }
    Measurements(const Measurements&) = delete;
    Measurements& operator=(const Measurements&) = delete;

    /// Records how a run ended, whatever its outcome.
    void add(const measure::Run& run, const policy::PolicySet& policies);
    /// Keeps a finished record, such as the passive cost of a policy.
    void keep(state::MeasurementRecord record);
    /// Tries to write some of what waits, if it is time to.
    void write_rest();
    /// Writes all that waits, at the end; what cannot be written then is lost, and that is told.
    void finish();
    /// What the history holds of one kind, oldest first; empty without a history.
    [[nodiscard]] std::vector<state::MeasurementRecord> kept(const std::string& kind);

    /// No value before the first run.
    [[nodiscard]] std::optional<MeasurementReport> report() const;
    /// The last records of one kind or ("") of all.
    [[nodiscard]] HistoryReport history(const std::string& kind);

    /// What is to be told since the last call, oldest first.
    [[nodiscard]] std::vector<Notice> take_notices();

  private:
    bool open(); ///< false without a history
    void let_go_if_moved();
    void recall();
    std::int64_t write(const state::MeasurementRecord& record);
    std::int64_t flush();
    void forget_oldest();
    void fail_to_open(const Error& error);
    void tell(Notice::Kind kind, std::string text);
    void tell_of_regression(const state::MeasurementRecord& record);

    std::string state_dir_;
    std::optional<state::History> history_;
    std::chrono::seconds pause_;
    std::optional<std::chrono::steady_clock::time_point> failed_; ///< the last attempt to open or write it
    std::size_t dropped_ = 0;                                     ///< results that had to make room
    bool has_recalled_ = false;                                   ///< what the history held before
    std::vector<state::MeasurementRecord> recent_;                ///< of kind "ttcp", oldest first
    std::deque<state::MeasurementRecord> unwritten_;              ///< of all kinds, oldest first
    std::vector<Notice> notices_;
};

/// What a history holds while no daemon runs, or beside one: nothing is changed. No value: there is none.
[[nodiscard]] Result<std::optional<HistoryReport>> read_history(const std::string& state_dir,
                                                                const std::string& kind);

} // namespace affinityd::accounting
