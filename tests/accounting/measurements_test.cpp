// SPDX-License-Identifier: Apache-2.0
#include "accounting/measurements.hpp"
#include "measure/result.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

namespace affinityd::accounting {
namespace {

namespace fs = std::filesystem;
using state::MeasurementRecord;

class MeasurementsTest : public ::testing::Test {
  protected:
    MeasurementsTest() {
        std::string name = (fs::temp_directory_path() / "measurements-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~MeasurementsTest() override { fs::remove_all(folder_); }

    static std::string report(double rate, measure::Outcome outcome = measure::Outcome::done,
                              const std::string& path = "loopback") {
        measure::Report report;
        report.outcome = outcome;
        if (outcome != measure::Outcome::done) report.reason = "for a reason";
        report.setup.path = path;
        report.setup.streams = 1;
        report.seconds = 5;
        report.bytes = static_cast<std::uint64_t>(rate * 5 / 8);
        report.bits_per_second = rate;
        return measure::to_json(report);
    }
    /// How many notices held the text, of all since the test began.
    std::size_t said(Measurements& measurements, const std::string& text) {
        for (auto& notice : measurements.take_notices())
            notices_.push_back(std::move(notice));
        return static_cast<std::size_t>(std::ranges::count_if(
            notices_, [&](const auto& notice) { return notice.text.find(text) != std::string::npos; }));
    }
    std::string folder_;
    std::vector<Notice> notices_;
    policy::PolicySet none_;
};

TEST_F(MeasurementsTest, RegressionIsToldOnceAndStaysInStatus) {
    Measurements measurements(folder_);
    EXPECT_FALSE(measurements.report());
    for (int i = 0; i < 12; ++i)
        measurements.add({report(10e9 + 1e7 * (i % 3)), {}, {}}, none_);
    EXPECT_EQ(said(measurements, "fell by"), 0U);
    EXPECT_EQ(measurements.report()->trend.trend, measure::Trend::steady);
    measurements.add({report(6e9), {}, {}}, none_);
    EXPECT_EQ(said(measurements, "throughput over loopback fell by 40.1 %"), 1U);
    const auto now = measurements.report();
    EXPECT_EQ(now->trend.trend, measure::Trend::down);
    EXPECT_NE(now->summary.find("below what was expected"), std::string::npos) << now->summary;
    measurements.add({report(6e9), {}, {}}, none_);
    EXPECT_EQ(said(measurements, "fell by"), 1U); // it was below before: not again
    measurements.add({report(10e9), {}, {}}, none_);
    measurements.add({report(5e9), {}, {}}, none_);
    EXPECT_EQ(said(measurements, "fell by"), 2U); // it had recovered
}

TEST_F(MeasurementsTest, OtherWaysAndFailedRunsAreNotCompared) {
    Measurements measurements(folder_);
    for (int i = 0; i < 12; ++i)
        measurements.add({report(10e9), {}, {}}, none_);
    measurements.add({report(1e9, measure::Outcome::done, "peer:5001"), {}, {}}, none_);
    measurements.add({report(0, measure::Outcome::peer_gone), {}, {}}, none_);
    measurements.add({"", measure::Outcome::killed, "was killed by signal 9"}, none_);
    measurements.add({"{\"nonsense\":1}", {}, {}}, none_);
    EXPECT_EQ(said(measurements, "fell by"), 0U);
    EXPECT_EQ(said(measurements, "peer_gone: for a reason"), 1U);
    EXPECT_EQ(said(measurements, "was killed by signal 9"), 1U);
    const auto history = measurements.history("");
    ASSERT_EQ(history.records.size(), 16U);
    EXPECT_EQ(history.records[13].outcome, "peer_gone");
    EXPECT_EQ(history.records[14].outcome, "killed");
    EXPECT_EQ(history.records[15].outcome, "failed");
    EXPECT_NE(history.records[15].reason.find("cannot be read"), std::string::npos);
    EXPECT_EQ(history.trends.size(), 2U);
}

TEST_F(MeasurementsTest, HistoryOutlivesTheDaemon) {
    {
        Measurements measurements(folder_);
        for (int i = 0; i < 10; ++i)
            measurements.add({report(10e9), {}, {}}, none_);
    }
    Measurements measurements(folder_);
    EXPECT_EQ(measurements.report()->runs, 10U);
    measurements.add({report(2e9), {}, {}}, none_);
    EXPECT_EQ(said(measurements, "fell by"), 1U);
    EXPECT_EQ(measurements.history("ttcp").records.size(), 11U);
    EXPECT_EQ(measurements.history("passive").records.size(), 0U);
}

TEST_F(MeasurementsTest, DamagedHistoryIsSetAsideAndSaid) {
    std::ofstream(folder_ + "/history.db") << std::string(5000, 'x');
    Measurements measurements(folder_);
    EXPECT_EQ(said(measurements, "could not be used"), 1U);
    measurements.add({report(1e9), {}, {}}, none_);
    const auto history = measurements.history("");
    EXPECT_EQ(history.records.size(), 1U);
    EXPECT_TRUE(history.kept);
    std::size_t aside = 0;
    for (const auto& entry : fs::directory_iterator(folder_))
        aside += entry.path().filename().string().starts_with("history.db.corrupt-") ? 1 : 0;
    EXPECT_EQ(aside, 1U);
}

TEST_F(MeasurementsTest, AHistoryBeginsWithTheFirstRecord) {
    Measurements measurements(folder_);
    EXPECT_FALSE(state::History::has_file(folder_));
    EXPECT_TRUE(measurements.kept("ttcp").empty());
    auto history = measurements.history("");
    EXPECT_TRUE(history.kept);
    EXPECT_EQ(history.records.size(), 0U);
    EXPECT_FALSE(state::History::has_file(folder_));
    measurements.add({report(1e9), {}, {}}, none_);
    EXPECT_TRUE(state::History::has_file(folder_));
    EXPECT_EQ(measurements.history("").records.size(), 1U);
}

TEST_F(MeasurementsTest, AHistoryThatAnExperimentBeganIsShownAndGoesOn) {
    Measurements measurements(folder_);
    ASSERT_TRUE(keep_experiment(folder_, {.kind = "smt", .summary = "as long as alone", .subject = "cpu 0"}));
    EXPECT_EQ(measurements.history("").records.size(), 1U);
    EXPECT_EQ(measurements.history("ttcp").records.size(), 0U);
    measurements.add({report(1e9), {}, {}}, none_);
    EXPECT_EQ(measurements.history("").records.size(), 2U);
    EXPECT_EQ(said(measurements, "could not be used"), 0U);
}

TEST_F(MeasurementsTest, WithoutAPlaceForItRunsAreKnownToTheDaemonAlone) {
    std::ofstream(folder_ + "/file") << "in the way";
    Measurements measurements(folder_ + "/file/state");
    measurements.add({report(1e9), {}, {}}, none_);
    measurements.add({report(2e9), {}, {}}, none_);
    EXPECT_EQ(said(measurements, "the measurement is not kept"), 2U);
    auto history = measurements.history("");
    EXPECT_FALSE(history.kept);
    EXPECT_EQ(measurements.report()->runs, 2U);
    fs::remove(folder_ + "/file"); // what was in the way goes
    measurements.add({report(3e9), {}, {}}, none_);
    history = measurements.history("");
    EXPECT_TRUE(history.kept);
    EXPECT_EQ(history.records.size(), 1U);
    EXPECT_EQ(measurements.report()->runs, 3U);
}

TEST_F(MeasurementsTest, ARecordThatCannotBeWrittenIsToldAndLost) {
    Measurements measurements(folder_);
    measurements.add({report(1e9), {}, {}}, none_);
    sqlite3* other = nullptr; // a program that writes for long
    ASSERT_EQ(sqlite3_open((folder_ + "/history.db").c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    measurements.add({report(2e9), {}, {}}, none_);
    sqlite3_close(other);
    EXPECT_EQ(said(measurements, "kept"), 1U);
    measurements.add({report(3e9), {}, {}}, none_);
    EXPECT_EQ(measurements.history("ttcp").records.size(), 2U);
    EXPECT_EQ(measurements.report()->runs, 3U) << "it is remembered";
}

TEST_F(MeasurementsTest, MeasurementsAfterTheFileWasRemovedGoToANewOne) {
    Measurements measurements(folder_);
    measurements.add({report(1e9), {}, {}}, none_);
    for (const auto* ending : {"", "-wal", "-shm"})
        fs::remove(folder_ + "/history.db" + ending);
    measurements.add({report(2e9), {}, {}}, none_);
    EXPECT_EQ(Measurements(folder_).history("ttcp").records.size(), 1U);
    EXPECT_EQ(measurements.report()->runs, 2U) << "it is remembered";
}

TEST_F(MeasurementsTest, ManyMayCreateItAtOnce) {
    std::vector<std::jthread> others;
    std::atomic<int> failures = 0;
    for (int i = 0; i < 8; ++i)
        others.emplace_back([&] {
            if (!keep_experiment(folder_, {.kind = "smt", .summary = "as long as alone", .subject = "cpu 0"}))
                ++failures;
        });
    others.clear();
    EXPECT_EQ(failures, 0);
    Measurements measurements(folder_);
    EXPECT_EQ(measurements.history("smt").records.size(), 8U);
}

TEST_F(MeasurementsTest, OnlyRootReadsTheFileWhicheverUserCreatesIt) {
    const auto before = ::umask(022);
    ASSERT_TRUE(keep_experiment(folder_, {.kind = "smt", .summary = "as long as alone", .subject = "cpu 0"}));
    ::umask(before);
    EXPECT_EQ(fs::status(folder_ + "/history.db").permissions(),
              fs::perms::owner_read | fs::perms::owner_write);
}

} // namespace
} // namespace affinityd::accounting
