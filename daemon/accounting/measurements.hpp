// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "measure/run.hpp"
#include "measure/statistics.hpp"
#include "policy/policy.hpp"
#include "state/history.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::accounting {

/// Something that happened and that a person is to be told once.
struct Notice {
    enum class Kind : std::uint8_t {
        measured,           ///< a run has ended
        regression,         ///< throughput fell
        not_kept,           ///< a result could not be written to the history
        history_set_aside,  ///< the history was damaged; a new one begins
        history_unreadable, ///< the history is there, but a query failed
    };
    Kind kind = Kind::measured;
    std::string text; ///< one line
};

/// The last ttcp measurement and how it stands to those before it.
struct MeasurementReport {
    state::MeasurementRecord last;
    std::string summary;  ///< one line for a person
    std::size_t runs = 0; ///< remembered, `last` included
    measure::TrendReport trend;
};

/// The trend of the runs over one path.
struct PathTrend {
    std::string kind; ///< "ttcp"
    std::string path; ///< "loopback", or the peer
    measure::TrendReport trend;
};

/// The measurements that are kept.
struct HistoryReport {
    std::vector<state::MeasurementRecord> records; ///< oldest first
    std::vector<PathTrend> trends;                 ///< by kind and path
    bool kept = false; ///< on disk; false: only what this daemon has measured itself
    std::string fault; ///< why the history could not be read; "": it could
};

/// True if the measurement went through interrupts of a NIC; loopback never does.
[[nodiscard]] inline bool touches_nic_interrupts(const state::MeasurementRecord& record) {
    return record.path != "loopback";
}

/// The results of measurements: kept over restarts where there is a history, and compared with the runs
/// before. SQLite takes more than 1 MiB of memory: the history is open only while it is read or written.
class Measurements {
  public:
    /// "": nothing is kept on disk. A history begins with the first record. A result that cannot be written
    /// (a full disk, a lock) is lost to it, and that is told; the last 64 runs are known all the same.
    explicit Measurements(std::string state_dir);

    /// Records how a run ended, whatever its outcome.
    void add(const measure::Run& run, const policy::PolicySet& policies);
    /// Keeps a finished record, such as the passive cost of a policy.
    void keep(state::MeasurementRecord record);
    /// The records of one kind in the history, oldest first; empty without a history.
    [[nodiscard]] std::vector<state::MeasurementRecord> kept(const std::string& kind);

    /// No value before the first run.
    [[nodiscard]] std::optional<MeasurementReport> report() const;
    /// The last records of one kind or ("") of all.
    [[nodiscard]] HistoryReport history(const std::string& kind) const;

    /// Things to be told since the last call, oldest first.
    [[nodiscard]] std::vector<Notice> take_notices() { return std::exchange(notices_, {}); }

  private:
    [[nodiscard]] Result<state::History> open();
    std::int64_t write(const state::MeasurementRecord& record);
    void forget_oldest();
    void tell(Notice::Kind kind, std::string text) { notices_.push_back({kind, std::move(text)}); }
    void tell_of_regression(const state::MeasurementRecord& record);

    std::string state_dir_;
    bool is_kept_;                                 ///< the last attempt to open it was good
    std::vector<state::MeasurementRecord> recent_; ///< of kind "ttcp", oldest first
    std::vector<Notice> notices_;
};

/// The history while no daemon runs, or beside one: nothing is changed. No value: there is none.
[[nodiscard]] Result<std::optional<HistoryReport>> read_history(const std::string& state_dir,
                                                                const std::string& kind);

/// An experiment as the measurement history has it.
struct Experiment {
    std::string kind;      ///< "models", "latency", "sharing", "smt" or "cache"
    std::string summary;   ///< one line that says what was found, for tables; at most 4 KiB
    std::string subject;   ///< what it was measured on, as "CPUs 0-15"; may be empty
    double seconds = 0;    ///< how long it took
    std::string detail;    ///< all of it, as JSON, at most most_experiment_detail bytes
    std::int64_t time = 0; ///< when it ended, seconds since 1970 (UTC); keep_experiment sets it
};

inline constexpr std::size_t most_experiment_detail = 4U << 20; ///< as state::most_detail

/// Keeps a finished experiment in the history of `state_dir`, beside a daemon that has it open. An Error: it
/// cannot be written, the detail is too long, or there is no such kind. Otherwise a remark for people: that a
/// damaged history was set aside; "" if all is well.
[[nodiscard]] Result<std::string> keep_experiment(const std::string& state_dir, const Experiment& experiment);

/// The newest experiment of a kind. No value: there is none, or no history.
[[nodiscard]] Result<std::optional<Experiment>> newest_experiment(const std::string& state_dir,
                                                                  std::string_view kind);

} // namespace affinityd::accounting
