// SPDX-License-Identifier: Apache-2.0
#include "app/measurements.hpp"
#include "app/message_ids.hpp"
#include "measure/result.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

namespace affinityd::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class MeasurementsTest : public ::testing::Test {
  protected:
    MeasurementsTest() {
        ::unsetenv("JOURNAL_STREAM"); // what is said must come to our sink
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
    std::size_t said(const std::string& text) {
        std::size_t count = 0;
        const std::string all = text_.str();
        for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1))
            ++count;
        return count;
    }
    std::string folder_;
    std::ostringstream text_;
    Log log_{
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(text_))};
    policy::PolicySet none_;
};

TEST_F(MeasurementsTest, RegressionIsToldOnceAndStaysInStatus) {
    Measurements measurements(folder_, log_);
    EXPECT_EQ(measurements.to_json(), "null");
    for (int i = 0; i < 12; ++i)
        measurements.add({report(10e9 + 1e7 * (i % 3)), {}, {}}, none_);
    EXPECT_EQ(said("fell by"), 0U) << text_.str();
    EXPECT_EQ(json::parse(measurements.to_json())["trend"]["direction"], "steady");
    measurements.add({report(6e9), {}, {}}, none_);
    EXPECT_EQ(said("throughput over loopback fell by 40.1 %"), 1U) << text_.str();
    const auto now = json::parse(measurements.to_json());
    EXPECT_EQ(now["trend"]["direction"], "down");
    EXPECT_NE(now["summary"].get<std::string>().find("REGRESSION"), std::string::npos);
    measurements.add({report(6e9), {}, {}}, none_);
    EXPECT_EQ(said("fell by"), 1U); // it was below before: not again
    measurements.add({report(10e9), {}, {}}, none_);
    measurements.add({report(5e9), {}, {}}, none_);
    EXPECT_EQ(said("fell by"), 2U); // it had recovered
}

TEST_F(MeasurementsTest, OtherWaysAndFailedRunsAreNotCompared) {
    Measurements measurements(folder_, log_);
    for (int i = 0; i < 12; ++i)
        measurements.add({report(10e9), {}, {}}, none_);
    measurements.add({report(1e9, measure::Outcome::done, "peer:5001"), {}, {}}, none_);
    measurements.add({report(0, measure::Outcome::peer_gone), {}, {}}, none_);
    measurements.add({"", measure::Outcome::killed, "was killed by signal 9"}, none_);
    measurements.add({"{\"nonsense\":1}", {}, {}}, none_);
    EXPECT_EQ(said("fell by"), 0U) << text_.str();
    EXPECT_EQ(said("peer_gone: for a reason"), 1U);
    EXPECT_EQ(said("was killed by signal 9"), 1U);
    const auto history = json::parse(measurements.history(""));
    ASSERT_EQ(history["records"].size(), 16U);
    EXPECT_EQ(history["records"][13]["outcome"], "peer_gone");
    EXPECT_EQ(history["records"][14]["outcome"], "killed");
    EXPECT_EQ(history["records"][15]["outcome"], "failed");
    EXPECT_NE(history["records"][15]["reason"].get<std::string>().find("cannot be read"), std::string::npos);
    EXPECT_EQ(history["trends"].size(), 2U);
}

TEST_F(MeasurementsTest, HistoryOutlivesTheDaemon) {
    {
        Measurements measurements(folder_, log_);
        for (int i = 0; i < 10; ++i)
            measurements.add({report(10e9), {}, {}}, none_);
    }
    Measurements measurements(folder_, log_);
    EXPECT_EQ(json::parse(measurements.to_json())["runs"], 10);
    measurements.add({report(2e9), {}, {}}, none_);
    EXPECT_EQ(said("fell by"), 1U);
    EXPECT_EQ(json::parse(measurements.history("ttcp"))["records"].size(), 11U);
    EXPECT_EQ(json::parse(measurements.history("passive"))["records"].size(), 0U);
}

TEST_F(MeasurementsTest, DamagedHistoryIsSetAsideAndSaid) {
    std::ofstream(folder_ + "/history.db") << std::string(5000, 'x');
    Measurements measurements(folder_, log_);
    EXPECT_EQ(said("could not be used"), 1U) << text_.str();
    measurements.add({report(1e9), {}, {}}, none_);
    const auto history = json::parse(measurements.history(""));
    EXPECT_EQ(history["records"].size(), 1U);
    EXPECT_TRUE(history["kept"]);
    std::size_t aside = 0;
    for (const auto& entry : fs::directory_iterator(folder_))
        aside += entry.path().filename().string().starts_with("history.db.corrupt-") ? 1 : 0;
    EXPECT_EQ(aside, 1U);
}

TEST_F(MeasurementsTest, WithoutAPlaceForItResultsAreKnownUntilTheEnd) {
    std::ofstream(folder_ + "/file") << "in the way";
    Measurements measurements(folder_ + "/file/state", log_);
    EXPECT_EQ(said("kept until the end only"), 1U) << text_.str();
    measurements.add({report(1e9), {}, {}}, none_);
    const auto history = json::parse(measurements.history(""));
    EXPECT_FALSE(history["kept"]);
    EXPECT_EQ(history["records"].size(), 1U);
}

TEST(MessageIds, AreExplainedInTheCatalog) {
    std::ifstream file(CATALOG);
    const std::string catalog((std::istreambuf_iterator<char>(file)), {});
    for (const std::string id : {regression_message, history_damaged_message}) {
        EXPECT_EQ(id.size(), 32U);
        EXPECT_NE(catalog.find("-- " + id + "\nSubject: "), std::string::npos) << id;
    }
}

} // namespace
} // namespace affinityd::app
