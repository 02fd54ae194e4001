// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;

namespace affinityd::state {

/// The values of MeasurementRecord::kind.
inline constexpr std::array<std::string_view, 10> measurement_kinds{
    "ttcp", "models", "passive", "locality", "trial", "auto", "latency", "sharing", "smt", "cache"};
/// The kinds that affinityctl writes: what an experiment found.
inline constexpr std::array<std::string_view, 5> experiment_kinds{"models", "latency", "sharing", "smt",
                                                                  "cache"};
/// The longest MeasurementRecord::detail. A matrix of latencies between 256 CPUs, with intervals, takes some
/// 0.6 MB; one between 1024, without, 3.2.
inline constexpr std::size_t most_detail = 4U << 20;

/// The figures of one measurement.
struct MeasuredFigures {
    double seconds = 0;
    std::uint64_t bytes = 0;
    double bits_per_second = 0;
    double cpu_seconds = 0; ///< user and system of the ends that ran here
    std::optional<double> ghz_per_gbps;
    friend bool operator==(const MeasuredFigures&, const MeasuredFigures&) = default;
};

/// A measurement as it is kept: what is asked for often as columns, the rest as the text it came in.
struct MeasurementRecord : MeasuredFigures {
    std::int64_t id = 0;   ///< given by the history, ascending; ignored by append
    std::int64_t time = 0; ///< when it ended, seconds since 1970 (UTC)
    std::string kind;      ///< one of measurement_kinds
    std::string outcome;   ///< "done", "skipped", "killed", ...
    std::string reason;    ///< why it is not "done"; of locality and experiments: the figures
    std::string path;      ///< "loopback", or the peer; of experiments: on what
    std::string model;     ///< affinity model in force: "none", "irq", "process", "full", "mixed", ""
    std::string policies;  ///< which set was in force, as the daemon names it
    std::string detail;    ///< the whole report as JSON text, at most most_detail; longer ones are left out
    friend bool operator==(const MeasurementRecord&, const MeasurementRecord&) = default;
};

/// How much is kept; the oldest go first.
struct HistoryBounds {
    std::int64_t age_seconds =
        400LL * 86400;               ///< a year and a bit, so that the same week a year ago is still there
    std::int64_t bytes = 64LL << 20; ///< of the file
};

/// The measurement history: an SQLite file under the state directory. Sole owner of its connection.
class History {
  public:
    struct Opened;
    /// Whether `directory` has a history.db, whatever it may be.
    [[nodiscard]] static bool has_file(const std::string& directory);
    /// Opens or creates `directory`/history.db. A file that is damaged, foreign or of a newer version is
    /// renamed to history.db.corrupt-TIME and a new one begun; what was set aside is said, not logged.
    /// Creates the directory.
    [[nodiscard]] static Result<Opened> open(const std::string& directory, std::int64_t now,
                                             HistoryBounds bounds = {});
    /// For readers beside the daemon: changes nothing. Nothing if there is no history yet.
    [[nodiscard]] static Result<std::optional<History>> open_to_read(const std::string& directory);

    /// Keeps one record and drops what is beyond the bounds, as one step. `record.time` may be before the
    /// last one's (the clock was set back): the order is that of appending. An Error leaves the history as it
    /// was (disk full: ENOSPC).
    [[nodiscard]] Result<std::int64_t> append(const MeasurementRecord& record);
    enum class Read : bool { figures, all };
    /// The last `count` records, oldest first; `kind` "" is any. The details only with Read::all: those of a
    /// thousand records may be a gigabyte.
    [[nodiscard]] Result<std::vector<MeasurementRecord>> last(std::size_t count, const std::string& kind = {},
                                                              Read read = Read::all) const;
    [[nodiscard]] Result<std::uint64_t> size() const; ///< number of records

  private:
    struct Close {
        void operator()(sqlite3* database) const;
    };
    using Database = std::unique_ptr<sqlite3, Close>;
    History(Database database, HistoryBounds bounds) : database_(std::move(database)), bounds_(bounds) {}
    [[nodiscard]] static Result<Database> open_file(const std::string& path, int flags);
    [[nodiscard]] Result<void> trim(std::int64_t now);
    Database database_;
    HistoryBounds bounds_;
};

struct History::Opened {
    History history;
    std::string set_aside; ///< where a file that could not be used was put, "" if none was
    std::string why;       ///< what was wrong with it
    /// The same for people; "": nothing was set aside.
    [[nodiscard]] std::string remark() const;
};

} // namespace affinityd::state
