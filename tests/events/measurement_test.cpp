// SPDX-License-Identifier: Apache-2.0
#include "events/measurement.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::events {
namespace {

namespace fs = std::filesystem;

class MeasurementTest : public ::testing::Test {
  public:
    MeasurementTest(const MeasurementTest&) = delete;
    MeasurementTest& operator=(const MeasurementTest&) = delete;
    ~MeasurementTest() override {
        ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
        fs::remove_all(folder_);
    }

  protected:
    MeasurementTest() {
        std::string name = (fs::temp_directory_path() / "measurement-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
        fs::permissions(folder_, fs::perms::all); // the child is another user
        ::sigprocmask(SIG_BLOCK, nullptr, &mask_);
        sd_event* event = nullptr;
        EXPECT_GE(sd_event_new(&event), 0);
        event_.reset(event);
    }
    static void block_child_signals(bool block) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        ::sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
    }
    [[nodiscard]] std::string script(const std::string& body) const {
        const auto path = folder_ / "affinity-ttcp";
        std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
        fs::permissions(path, fs::perms::all);
        return path.string();
    }
    [[nodiscard]] std::string socket() const { return (folder_ / "measure").string(); }
    /// The socket has no listener.
    [[nodiscard]] Measurement::Places program(const std::string& body) const {
        return {socket(), script(body)};
    }
    void run_until(const std::function<bool()>& done) {
        for (int i = 0; !done() && i < 600; ++i)
            ASSERT_GE(sd_event_run(event_.get(), 100'000), 0);
        EXPECT_TRUE(done());
    }
    fs::path folder_;
    sigset_t mask_{};
    LoopHandle event_;
};

TEST_F(MeasurementTest, ReportArrivesAndTheNextRunMayBegin) {
    block_child_signals(true);
    std::vector<measure::Run> runs;
    Measurement child(
        event_.get(), {}, [&](const measure::Run& run) { runs.push_back(run); },
        program("shift 2; echo \"$@\""));
    for (std::size_t i = 1; i <= 2; ++i) {
        ASSERT_TRUE(child.start(false));
        EXPECT_TRUE(child.running());
        EXPECT_FALSE(child.start(false)); // one at a time
        run_until([&] { return runs.size() == i; });
        EXPECT_FALSE(child.running());
        EXPECT_EQ(runs.back().output, "--loopback --seconds 5 --json\n");
        EXPECT_EQ(runs.back().outcome, measure::Outcome::done);
    }
}

TEST_F(MeasurementTest, NextRunMayBeginFromTheReport) {
    block_child_signals(true);
    int count = 0;
    bool started_again = false;
    Measurement* self = nullptr;
    Measurement child(
        event_.get(), {},
        [&](const measure::Run&) {
            if (++count == 1) started_again = self->start(false).has_value();
        },
        program("exit 0"));
    self = &child;
    ASSERT_TRUE(child.start(false));
    run_until([&] { return count == 2; });
    EXPECT_TRUE(started_again);
    EXPECT_FALSE(child.running());
}

/// sd_event_add_child(3) fails with EBUSY while SIGCHLD is not blocked, which is when the program runs.
TEST_F(MeasurementTest, FailureAfterTheStartLeavesNoChildAndTheNextRunMayBegin) {
    block_child_signals(false);
    int count = 0;
    Measurement child(
        event_.get(), {}, [&](const measure::Run&) { ++count; }, program("sleep 600"));
    const auto failed = child.start(false);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message, "cannot watch the measuring program");
    EXPECT_FALSE(child.running());
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
    block_child_signals(true);
    static_cast<void>(script("exit 0"));
    ASSERT_TRUE(child.start(false)) << "a failed start must not count as running";
    run_until([&] { return count == 1; });
}

TEST_F(MeasurementTest, WithoutAProgramItDoesNotStart) {
    Measurement child(event_.get(), {}, [](const measure::Run&) {}, {socket(), std::nullopt});
    EXPECT_FALSE(child.start(false));
    EXPECT_FALSE(child.running());
}

TEST_F(MeasurementTest, DestroyedWhileItRunsLeavesNoProcess) {
    block_child_signals(true);
    {
        Measurement child(
            event_.get(), {}, [](const measure::Run&) {}, program("sleep 600"));
        ASSERT_TRUE(child.start(false));
    }
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

/// A measuring unit: what it is asked, and what it answers, is up to the test.
class UnitMeasurementTest : public MeasurementTest {
  protected:
    UnitMeasurementTest() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        socket().copy(address.sun_path, sizeof address.sun_path - 1);
        EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(listener_.get(), 4), 0);
    }
    [[nodiscard]] Measurement::Places places() const { return {socket(), std::nullopt}; }
    [[nodiscard]] host::Fd accepted() const { return host::Fd(::accept(listener_.get(), nullptr, nullptr)); }
    [[nodiscard]] static std::string received(const host::Fd& connection) {
        std::array<char, 1024> text{};
        const auto got = ::read(connection.get(), text.data(), text.size());
        return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : "";
    }
    host::Fd listener_;
    std::vector<measure::Run> runs_;
    Measurement::Done note_ = [this](const measure::Run& run) { runs_.push_back(run); };
};

TEST_F(UnitMeasurementTest, ReportOfAUnitArrivesInPiecesAndTheNextRunMayBegin) {
    Measurement measurement(event_.get(), {}, note_, places());
    for (std::size_t i = 1; i <= 2; ++i) {
        ASSERT_TRUE(measurement.start(false));
        EXPECT_FALSE(measurement.start(false)); // one at a time
        auto unit = accepted();
        EXPECT_EQ(received(unit), "[\"--loopback\",\"--seconds\",\"5\",\"--json\"]\n");
        for (const std::string piece : {"{\"outcome\":", "\"done\"}\n"}) {
            ASSERT_EQ(::write(unit.get(), piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
            ASSERT_GE(sd_event_run(event_.get(), 100'000), 0);
            EXPECT_TRUE(measurement.running());
        }
        unit.reset();
        run_until([&] { return runs_.size() == i; });
        EXPECT_FALSE(measurement.running());
        EXPECT_EQ(runs_.back().output, "{\"outcome\":\"done\"}\n");
        EXPECT_EQ(runs_.back().outcome, measure::Outcome::done);
    }
}

TEST_F(UnitMeasurementTest, AUnitThatEndsWithoutAReportIsAFailedRun) {
    Measurement measurement(event_.get(), {}, note_, places());
    ASSERT_TRUE(measurement.start(false));
    accepted().reset();
    run_until([&] { return runs_.size() == 1; });
    EXPECT_EQ(runs_.back().outcome, measure::Outcome::failed);
    EXPECT_NE(runs_.back().fault.find("without a report"), std::string::npos);
}

TEST_F(UnitMeasurementTest, TheUnitLosesItsConnectionWithTheMeasurement) {
    host::Fd unit;
    {
        Measurement measurement(event_.get(), {}, note_, places());
        ASSERT_TRUE(measurement.start(false));
        unit = accepted();
        EXPECT_NE(received(unit), "");
    }
    EXPECT_EQ(received(unit), "");
}

TEST_F(UnitMeasurementTest, ASocketWithoutAListenerIsAsIfThereWereNone) {
    block_child_signals(true);
    listener_.reset();
    Measurement measurement(event_.get(), {}, note_, program("exit 0"));
    ASSERT_TRUE(measurement.start(false));
    run_until([&] { return runs_.size() == 1; });
}

} // namespace
} // namespace affinityd::events
