// SPDX-License-Identifier: Apache-2.0
#include "state/history.hpp"

#include "host/fd.hpp"
#include "host/file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::state {

namespace {

constexpr int schema_version = 1;
constexpr int application_id = 0x61666664; ///< "affd": a foreign SQLite file is not taken for ours
constexpr std::size_t most_text = 4096;
constexpr std::size_t most_rows = 100000;

constexpr const char* schema = R"(
CREATE TABLE measurement(
  id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, kind TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,
  path TEXT NOT NULL, model TEXT NOT NULL, policies TEXT NOT NULL, seconds REAL NOT NULL, bytes INTEGER NOT NULL,
  bits_per_second REAL NOT NULL, cpu_seconds REAL NOT NULL, ghz_per_gbps REAL, detail TEXT NOT NULL) STRICT;
CREATE INDEX measurement_time ON measurement(time);
)";
/// Also for files of earlier versions, which read it without.
constexpr const char* index = "CREATE INDEX IF NOT EXISTS measurement_kind ON measurement(kind, id);";
constexpr std::array endings{"", "-journal", "-wal", "-shm"}; ///< of the file and those beside it
constexpr const char* odd_file = "not a regular file";
constexpr const char* figures = "id, time, kind, outcome, reason, path, model, policies, seconds, bytes, "
                                "bits_per_second, cpu_seconds, ghz_per_gbps";

Error error_of(sqlite3* database, const char* what) {
    const int code = sqlite3_errcode(database);
    return Error{fmt::format("{}: {}", what, sqlite3_errmsg(database)), "measurement history",
                 code == SQLITE_FULL ? ENOSPC : 0};
}

class Statement {
  public:
    Statement(sqlite3* database, const std::string& text) {
        sqlite3_prepare_v2(database, text.c_str(), static_cast<int>(text.size()), &statement_, nullptr);
    }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;
    ~Statement() { sqlite3_finalize(statement_); }
    [[nodiscard]] explicit operator bool() const { return statement_ != nullptr; }
    void bind(int at, std::int64_t value) { sqlite3_bind_int64(statement_, at, value); }
    void bind(int at, double value) { sqlite3_bind_double(statement_, at, value); }
    void bind(int at, std::string_view text, std::size_t most) {
        text = text.substr(0, most);
        sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    }
    [[nodiscard]] int step() { return statement_ == nullptr ? SQLITE_ERROR : sqlite3_step(statement_); }
    [[nodiscard]] std::int64_t integer(int at) const { return sqlite3_column_int64(statement_, at); }
    [[nodiscard]] double real(int at) const { return sqlite3_column_double(statement_, at); }
    [[nodiscard]] bool is_null(int at) const { return sqlite3_column_type(statement_, at) == SQLITE_NULL; }
    [[nodiscard]] std::string text(int at) const {
        const auto* data = sqlite3_column_text(statement_, at);
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, at));
        return data == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(data), size);
    }

  private:
    sqlite3_stmt* statement_ = nullptr;
};

bool run(sqlite3* database, const std::string& text) {
    return sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

std::optional<std::int64_t> ask(sqlite3* database, const std::string& question) {
    Statement statement(database, question);
    if (statement.step() != SQLITE_ROW) return std::nullopt;
    return statement.integer(0);
}

/// The fault of the file; "" if it is a history and whole. An empty file is a new one.
std::string fault_of(sqlite3* database) {
    const auto tables = ask(database, "SELECT count(*) FROM sqlite_schema");
    if (!tables) return sqlite3_errmsg(database);
    if (*tables == 0 && ask(database, "PRAGMA user_version") == 0) return {};
    if (ask(database, "PRAGMA application_id") != application_id) return "not a measurement history";
    const auto version = ask(database, "PRAGMA user_version");
    if (version != schema_version)
        return fmt::format("schema version {}, this program knows {}", version.value_or(-1), schema_version);
    Statement check(database, "PRAGMA integrity_check(1)");
    if (check.step() != SQLITE_ROW) return sqlite3_errmsg(database);
    const auto verdict = check.text(0);
    if (verdict != "ok") return verdict;
    // The columns, as this program will use them: a table that was altered by hand is not ours either.
    if (!Statement(database, fmt::format("SELECT {}, detail FROM measurement", figures)))
        return sqlite3_errmsg(database);
    return {};
}

/// A file that is just created has nothing to lose yet, so nothing waits for the disk. To begin a transaction
/// waits for others who create it, as a change to a write-ahead log does not: that comes after it, and if it
/// fails, with the next opening.
bool create(sqlite3* database) {
    if (!run(database, "PRAGMA synchronous=OFF; BEGIN IMMEDIATE")) return false;
    const bool is_there = ask(database, "PRAGMA user_version") == schema_version;
    const auto text = is_there ? std::string("ROLLBACK")
                               : fmt::format("{} {} PRAGMA application_id={}; PRAGMA user_version={}; COMMIT",
                                             schema, index, application_id, schema_version);
    if (!run(database, text)) return false;
    static_cast<void>(run(database, "PRAGMA journal_mode=WAL"));
    return run(database, "PRAGMA synchronous=NORMAL");
}

bool prepare(sqlite3* database) {
    const auto version = ask(database, "PRAGMA user_version");
    if (!version) return false;
    if (*version != schema_version) return create(database);
    // With a write-ahead log a commit needs no fsync, which would hold up the daemon's loop for tens of
    // milliseconds; a power cut may cost the last records, never the file.
    return run(database, "PRAGMA synchronous=NORMAL; PRAGMA journal_mode=WAL") && run(database, index);
}

/// Moves the file and those that SQLite has beside it out of the way. Returns where the file is now.
Result<std::string> set_aside(const std::string& path, std::int64_t now) {
    std::string target = fmt::format("{}.corrupt-{}", path, now);
    std::error_code code;
    for (int i = 1; std::filesystem::exists(target, code) && i < 1000; ++i)
        target = fmt::format("{}.corrupt-{}.{}", path, now, i);
    for (const auto* ending : endings)
        if (std::rename((path + ending).c_str(), (target + ending).c_str()) != 0 && errno != ENOENT)
            return fail("cannot set the damaged file aside", path + ending, errno);
    return target;
}

/// A pipe would hold up its reader, and a link leads elsewhere.
bool is_odd(const std::string& path) {
    return std::ranges::any_of(endings, [&](const char* ending) {
        struct stat status {};
        return ::lstat((path + ending).c_str(), &status) == 0 && !S_ISREG(status.st_mode);
    });
}

/// Not the file's fault.
bool may_pass(int code) {
    return code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_IOERR || code == SQLITE_CANTOPEN ||
           code == SQLITE_NOMEM;
}

/// For file: URIs, https://www.sqlite.org/uri.html.
std::string escaped_uri(std::string_view path) {
    std::string result;
    for (const char c : path)
        result += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", static_cast<unsigned char>(c))
                                                   : std::string(1, c);
    return result;
}

std::int64_t as_integer(std::uint64_t value) {
    return static_cast<std::int64_t>(
        std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max()));
}

} // namespace

void History::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Result<History::Database> History::open_file(const std::string& path, int flags) {
    // Created for root alone: another user who may read the files beside it may hold a lock that writers wait
    // for. A file that is there is not opened here: to close it would end the locks that SQLite has on it
    // (fcntl(2)). The call below says why a file cannot be created.
    if ((flags & SQLITE_OPEN_CREATE) != 0)
        static_cast<void>(
            host::Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)));
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &opened, flags | SQLITE_OPEN_NOFOLLOW, nullptr);
    Database database(opened);
    if (code != SQLITE_OK)
        return fail(fmt::format("cannot open: {}", sqlite3_errstr(code)), path,
                    opened == nullptr ? 0 : sqlite3_system_errno(opened));
    sqlite3_busy_timeout(opened,
                         200); // readers hold it for a moment only; the daemon's loop must not wait long
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, 8 << 20);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    return database;
}

bool History::has_file(const std::string& directory) {
    struct stat status {};
    return ::lstat((directory + "/history.db").c_str(), &status) == 0;
}

Result<History::Opened> History::open(const std::string& directory, std::int64_t now, HistoryBounds bounds) {
    if (auto done = host::make_directories(directory, 0755); !done) return std::unexpected(done.error());
    const std::string path = directory + "/history.db";
    constexpr int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    Result<Database> database;
    std::string aside, why = is_odd(path) ? odd_file : "";
    if (why.empty()) {
        database = open_file(path, flags);
        if (!database) return std::unexpected(database.error());
        why = fault_of(database->get());
        if (!why.empty() && may_pass(sqlite3_errcode(database->get()))) return fail(why, path);
    }
    if (!why.empty()) {
        database->reset();
        auto target = set_aside(path, now);
        if (!target) return std::unexpected(target.error());
        aside = std::move(*target);
        database = open_file(path, flags);
        if (!database) return std::unexpected(database.error());
    }
    if (!prepare(database->get()))
        return std::unexpected(error_of(database->get(), "cannot create the table"));
    return Opened{History(std::move(*database), bounds), aside, why};
}

Result<std::optional<History>> History::open_to_read(const std::string& directory) {
    const std::string path = directory + "/history.db";
    std::error_code code;
    if (is_odd(path)) return fail(odd_file, path);
    if (!std::filesystem::exists(path, code)) return std::nullopt;
    // Without the right to write here a log cannot be shared; where no daemon has one open, the file alone is
    // all there is.
    const bool alone =
        !std::filesystem::exists(path + "-wal", code) && ::access(directory.c_str(), W_OK) != 0;
    auto database = alone ? open_file("file:" + escaped_uri(path) + "?immutable=1",
                                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
                          : open_file(path, SQLITE_OPEN_READONLY);
    if (!database) return std::unexpected(database.error());
    if (const auto fault = fault_of(database->get()); !fault.empty()) return fail(fault, path);
    if (ask(database->get(), "PRAGMA user_version") != schema_version)
        return std::nullopt; // created a moment ago
    return History(std::move(*database), {});
}

Result<std::int64_t> History::append(const MeasurementRecord& record) {
    auto* database = database_.get();
    if (!run(database, "BEGIN IMMEDIATE")) return std::unexpected(error_of(database, "cannot write"));
    std::optional<Error> fault;
    {
        Statement insert(
            database,
            fmt::format("INSERT INTO measurement({}, detail) VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                        figures));
        if (insert) {
            insert.bind(1, record.time);
            insert.bind(2, record.kind, most_text);
            insert.bind(3, record.outcome, most_text);
            insert.bind(4, record.reason, most_text);
            insert.bind(5, record.path, most_text);
            insert.bind(6, record.model, most_text);
            insert.bind(7, record.policies, most_text);
            insert.bind(8, record.seconds);
            insert.bind(9, as_integer(record.bytes));
            insert.bind(10, record.bits_per_second);
            insert.bind(11, record.cpu_seconds);
            if (record.ghz_per_gbps) insert.bind(12, *record.ghz_per_gbps);
            insert.bind(13, record.detail.size() > most_detail ? std::string_view() : record.detail,
                        most_detail);
        }
        if (insert.step() != SQLITE_DONE) fault = error_of(database, "cannot write");
    }
    const std::int64_t id = sqlite3_last_insert_rowid(database);
    if (!fault) {
        if (auto done = trim(record.time); !done) fault = done.error();
    }
    if (!fault && !run(database, "COMMIT")) fault = error_of(database, "cannot write");
    if (!fault) return id;
    run(database, "ROLLBACK");
    return std::unexpected(*fault);
}

/// Drops one part in 16 at a time, and never the record just written: a clock that jumped ahead for one
/// record must not empty the history.
Result<void> History::trim(std::int64_t now) {
    auto* database = database_.get();
    const auto page = ask(database, "PRAGMA page_size").value_or(4096);
    for (int round = 0; round < 64; ++round) {
        const auto used = page * (ask(database, "PRAGMA page_count").value_or(0) -
                                  ask(database, "PRAGMA freelist_count").value_or(0));
        const bool is_full = used > bounds_.bytes;
        const auto count = ask(database, "SELECT count(*) FROM measurement").value_or(0);
        if (count <= 1 || (!is_full && round > 0)) return {};
        const auto old = is_full ? "true" : fmt::format("time < {}", now - bounds_.age_seconds);
        if (!run(database,
                 fmt::format("DELETE FROM measurement WHERE id IN (SELECT id FROM measurement WHERE "
                             "{} AND id < (SELECT max(id) FROM measurement) ORDER BY id LIMIT {})",
                             old, std::max<std::int64_t>(1, count / 16))))
            return std::unexpected(error_of(database, "cannot drop old records"));
    }
    return {};
}

Result<std::vector<MeasurementRecord>> History::last(std::size_t count, const std::string& kind,
                                                     Read read) const {
    auto* database = database_.get();
    Statement query(database,
                    fmt::format("SELECT {}, {} FROM measurement WHERE {} ORDER BY id DESC LIMIT ?2", figures,
                                read == Read::all ? "detail" : "''", kind.empty() ? "?1=''" : "kind=?1"));
    if (!query) return std::unexpected(error_of(database, "cannot read"));
    query.bind(1, kind, most_text);
    query.bind(2, static_cast<std::int64_t>(std::min(count, most_rows)));
    std::vector<MeasurementRecord> records;
    int code = SQLITE_ROW;
    while ((code = query.step()) == SQLITE_ROW) {
        MeasurementRecord record;
        record.id = query.integer(0);
        record.time = query.integer(1);
        record.kind = query.text(2);
        record.outcome = query.text(3);
        record.reason = query.text(4);
        record.path = query.text(5);
        record.model = query.text(6);
        record.policies = query.text(7);
        record.seconds = query.real(8);
        record.bytes = static_cast<std::uint64_t>(query.integer(9));
        record.bits_per_second = query.real(10);
        record.cpu_seconds = query.real(11);
        if (!query.is_null(12)) record.ghz_per_gbps = query.real(12);
        record.detail = query.text(13);
        records.push_back(std::move(record));
    }
    if (code != SQLITE_DONE) return std::unexpected(error_of(database, "cannot read"));
    std::reverse(records.begin(), records.end());
    return records;
}

std::string History::Opened::remark() const {
    if (set_aside.empty()) return {};
    return fmt::format("the measurement history could not be used ({}), it is at {} and a new one begins",
                       why, set_aside);
}

Result<std::uint64_t> History::size() const {
    const auto count = ask(database_.get(), "SELECT count(*) FROM measurement");
    if (!count) return std::unexpected(error_of(database_.get(), "cannot read"));
    return static_cast<std::uint64_t>(*count);
}

} // namespace affinityd::state
