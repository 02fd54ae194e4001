// SPDX-License-Identifier: Apache-2.0
#include "state/history.hpp"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::state {
namespace {

namespace fs = std::filesystem;

class HistoryTest : public ::testing::Test {
  protected:
    HistoryTest() {
        std::string name = (fs::temp_directory_path() / "history-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~HistoryTest() override { fs::remove_all(folder_); }
    [[nodiscard]] std::string file() const { return folder_ + "/history.db"; }
    History open(std::int64_t now = 1000, HistoryBounds bounds = {}) {
        auto opened = History::open(folder_, now, bounds);
        if (!opened) throw std::runtime_error(opened.error().to_string());
        aside_ = opened->set_aside;
        why_ = opened->why;
        return std::move(opened->history);
    }
    void execute(const std::string& text) const {
        sqlite3* database = nullptr;
        ASSERT_EQ(sqlite3_open(file().c_str(), &database), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(database);
        sqlite3_close(database);
    }
    std::string folder_, aside_, why_;
};

MeasurementRecord record(std::int64_t time, double rate = 1e9) {
    return {{5, 625000000, rate, 1.5, 0.25},
            0,
            time,
            "ttcp",
            "done",
            "",
            "loopback",
            "full",
            "abc",
            R"({"version":1})"};
}

TEST_F(HistoryTest, KeepsWhatWasWrittenOverARestart) {
    auto written = record(100);
    written.reason = "it's \"quoted\"; DROP TABLE measurement;--\n\xf0\x9f\x98\x80";
    auto without = record(101);
    without.ghz_per_gbps.reset();
    without.outcome = "killed";
    {
        auto history = open();
        EXPECT_EQ(history.append(written).value(), 1);
        EXPECT_EQ(history.append(without).value(), 2);
    }
    auto history = open();
    EXPECT_EQ(aside_, "");
    const auto records = history.last(10).value();
    ASSERT_EQ(records.size(), 2U);
    written.id = 1;
    without.id = 2;
    EXPECT_EQ(records[0], written);
    EXPECT_EQ(records[1], without);
}

TEST_F(HistoryTest, OneKindIsFoundWithoutALookAtAllOthers) {
    open();
    // As an earlier version left it, with many of another kind.
    execute("DROP INDEX IF EXISTS measurement_kind;"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15000)"
            "INSERT INTO measurement SELECT NULL, i, 'passive', 'done', '', 'eth0', 'full', 'p', 1.0, 1, "
            "1e9, 1.0, 1.0, "
            "hex(zeroblob(1000)) FROM n");
    auto history = open();
    EXPECT_EQ(aside_, "");
    ASSERT_TRUE(history.append(record(20000)));
    const auto begin = std::clock();
    for (int i = 0; i < 50; ++i)
        ASSERT_EQ(history.last(10, "ttcp").value().size(), 1U);
    const auto took = std::clock() - begin;
    EXPECT_LT(took, CLOCKS_PER_SEC / 4) << "of CPU time";
    EXPECT_EQ(history.last(10, "passive").value().size(), 10U);
}

TEST_F(HistoryTest, LastIsTheNewestOldestFirstAndOfOneKind) {
    auto history = open();
    for (int i = 0; i < 20; ++i) {
        auto one = record(i);
        one.kind = i % 2 == 0 ? "ttcp" : "passive";
        ASSERT_TRUE(history.append(one));
    }
    const auto records = history.last(3, "passive").value();
    ASSERT_EQ(records.size(), 3U);
    EXPECT_EQ(records[0].time, 15);
    EXPECT_EQ(records[2].time, 19);
    EXPECT_EQ(history.size().value(), 20U);
}

TEST_F(HistoryTest, DamagedFileIsSetAsideAndSaid) {
    std::ofstream(file()) << "this is no database at all, but it is long enough to look at"
                          << std::string(5000, 'x');
    auto history = open(4711);
    EXPECT_EQ(aside_, file() + ".corrupt-4711");
    EXPECT_NE(why_, "");
    EXPECT_TRUE(fs::exists(aside_));
    EXPECT_TRUE(history.append(record(1)));
    EXPECT_EQ(history.size().value(), 1U);
}

TEST_F(HistoryTest, DamageInsideThePagesIsFound) {
    {
        auto history = open();
        for (int i = 0; i < 400; ++i)
            ASSERT_TRUE(history.append(record(i)));
    }
    {
        std::fstream damage(file(), std::ios::in | std::ios::out | std::ios::binary);
        const auto size = static_cast<std::streamoff>(fs::file_size(file()));
        for (std::streamoff at = 8192; at < size; at += 512) {
            damage.seekp(at);
            damage << "damaged!damaged!";
        }
    }
    auto history = open(7);
    EXPECT_EQ(aside_, file() + ".corrupt-7");
    EXPECT_EQ(history.size().value(), 0U);
}

TEST_F(HistoryTest, TruncatedFileIsSetAside) {
    {
        auto history = open();
        for (int i = 0; i < 400; ++i)
            ASSERT_TRUE(history.append(record(i)));
    }
    fs::resize_file(file(), fs::file_size(file()) / 2);
    auto history = open(8);
    EXPECT_NE(aside_, "");
    EXPECT_TRUE(history.append(record(1)));
}

TEST_F(HistoryTest, NewerOrForeignFileIsSetAsideNotChanged) {
    { auto history = open(); }
    execute("PRAGMA user_version=99");
    { auto history = open(9); }
    EXPECT_NE(why_.find("version 99"), std::string::npos) << why_;
    fs::remove(file());
    execute("CREATE TABLE cookies(a); INSERT INTO cookies VALUES(1)");
    auto history = open(10);
    EXPECT_EQ(why_, "not a measurement history");
    EXPECT_EQ(aside_, file() + ".corrupt-10");
}

struct Odd {
    const char* name;
    std::function<void(const std::string& path)> make;
};

class OddFiles : public HistoryTest, public testing::WithParamInterface<Odd> {};

TEST_P(OddFiles, AreSetAsideAndHoldNothingUp) {
    for (const std::string ending : {"", "-journal", "-wal", "-shm"}) {
        ASSERT_TRUE(open().append(record(1000)));
        fs::remove(file() + ending);
        GetParam().make(file() + ending);
        const auto read = History::open_to_read(folder_);
        ASSERT_FALSE(read) << ending;
        EXPECT_NE(read.error().to_string().find("not a regular file"), std::string::npos);
        auto history = open();
        EXPECT_EQ(why_, "not a regular file") << ending;
        const auto type = fs::symlink_status(aside_ + ending).type();
        EXPECT_TRUE(type != fs::file_type::not_found && type != fs::file_type::regular) << ending;
        EXPECT_TRUE(history.append(record(1000))) << ending;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Table, OddFiles,
    testing::Values(Odd{"Pipe", [](const auto& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }},
                    Odd{"Folder",
                        [](const auto& path) { fs::create_directories(path + "/with a file in it"); }},
                    Odd{"Link", [](const auto& path) { fs::create_symlink("/nowhere", path); }}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_F(HistoryTest, TwoDamagedFilesInOneSecondAreBothKept) {
    std::ofstream(file()) << std::string(4096, 'a');
    { auto history = open(5); }
    std::ofstream(file(), std::ios::trunc) << std::string(4096, 'b');
    auto history = open(5);
    EXPECT_TRUE(fs::exists(file() + ".corrupt-5"));
    EXPECT_TRUE(fs::exists(file() + ".corrupt-5.1"));
}

TEST_F(HistoryTest, OldRecordsGoByAge) {
    auto history = open(0, {.age_seconds = 100});
    for (int i = 0; i < 300; ++i)
        ASSERT_TRUE(history.append(record(i)));
    const auto records = history.last(1000).value();
    EXPECT_EQ(records.back().time, 299);
    EXPECT_GE(records.front().time, 199);
}

TEST_F(HistoryTest, AClockThatJumpsDoesNotEmptyTheHistory) {
    auto history = open(0, {.age_seconds = 1000});
    for (int i = 0; i < 160; ++i)
        ASSERT_TRUE(history.append(record(i)));
    ASSERT_TRUE(history.append(record(4000000000)));
    EXPECT_GE(history.size().value(), 150U);
    ASSERT_TRUE(history.append(record(161))); // and back
    EXPECT_EQ(history.last(1).value().front().time, 161);
    EXPECT_GE(history.size().value(), 150U);
}

TEST_F(HistoryTest, SizeIsBounded) {
    constexpr std::int64_t bound = 1 << 20;
    auto history = open(0, {.bytes = bound});
    auto big = record(0);
    big.detail = std::string(20000, 'd');
    for (int i = 0; i < 300; ++i) {
        big.time = i;
        ASSERT_TRUE(history.append(big));
    }
    EXPECT_LE(fs::file_size(file()), static_cast<std::uintmax_t>(bound + 64 * 4096));
    EXPECT_GE(history.size().value(), 30U);
    EXPECT_EQ(history.last(1).value().front().time, 299);
}

TEST_F(HistoryTest, ReaderSeesNothingWhereNothingIsAndChangesNothing) {
    EXPECT_FALSE(History::open_to_read(folder_).value().has_value());
    EXPECT_FALSE(fs::exists(file()));
    { EXPECT_TRUE(open().append(record(1))); }
    auto reader = History::open_to_read(folder_);
    ASSERT_TRUE(reader && *reader);
    EXPECT_EQ((*reader)->last(5)->size(), 1U);
    EXPECT_FALSE((*reader)->append(record(2)));
    std::ofstream(file(), std::ios::trunc) << std::string(4096, 'z');
    EXPECT_FALSE(History::open_to_read(folder_));
    EXPECT_TRUE(fs::exists(file())); // a reader sets nothing aside
}

TEST_F(HistoryTest, FullDiskIsAnErrorAndLeavesTheRest) {
    if (::geteuid() != 0) GTEST_FAIL() << "needs root for a small file system of its own";
    ASSERT_EQ(::mount("none", folder_.c_str(), "tmpfs", 0, "size=256k"), 0);
    {
        auto history = open();
        auto big = record(1);
        big.detail = std::string(30000, 'd');
        Result<std::int64_t> last = 0;
        for (int i = 0; i < 20 && last; ++i)
            last = history.append(big);
        ASSERT_FALSE(last);
        EXPECT_EQ(last.error().code, ENOSPC) << last.error().to_string();
        EXPECT_GE(history.size().value(), 1U);
    }
    {
        auto history = open();
        EXPECT_EQ(aside_, "");
        EXPECT_GE(history.size().value(), 1U);
    }
    EXPECT_EQ(::umount(folder_.c_str()), 0);
}

} // namespace
} // namespace affinityd::state
