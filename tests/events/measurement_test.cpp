// SPDX-License-Identifier: Apache-2.0
#include "events/measurement.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace affinityd::events {
namespace {

namespace fs = std::filesystem;

class MeasurementChildTest : public ::testing::Test {
  protected:
    MeasurementChildTest() {
        std::string name = (fs::temp_directory_path() / "measurement-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
        fs::permissions(folder_, fs::perms::all); // the child is another user
        ::sigprocmask(SIG_BLOCK, nullptr, &mask_);
        sd_event* event = nullptr;
        EXPECT_GE(sd_event_new(&event), 0);
        event_.reset(event);
    }
    ~MeasurementChildTest() override {
        ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
        fs::remove_all(folder_);
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
    void run_until(const std::function<bool()>& done) {
        for (int i = 0; !done() && i < 600; ++i)
            ASSERT_GE(sd_event_run(event_.get(), 100'000), 0);
        EXPECT_TRUE(done());
    }
    fs::path folder_;
    sigset_t mask_{};
    LoopHandle event_;
};

TEST_F(MeasurementChildTest, ReportArrivesAndTheNextRunMayBegin) {
    block_child_signals(true);
    std::vector<measure::Run> runs;
    MeasurementChild child(
        event_.get(), {}, [&](const measure::Run& run) { runs.push_back(run); }, script("echo \"$@\""));
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

TEST_F(MeasurementChildTest, NextRunMayBeginFromTheReport) {
    block_child_signals(true);
    int count = 0;
    bool started_again = false;
    MeasurementChild* self = nullptr;
    MeasurementChild child(
        event_.get(), {},
        [&](const measure::Run&) {
            if (++count == 1) started_again = self->start(false).has_value();
        },
        script("exit 0"));
    self = &child;
    ASSERT_TRUE(child.start(false));
    run_until([&] { return count == 2; });
    EXPECT_TRUE(started_again);
    EXPECT_FALSE(child.running());
}

/// sd_event_add_child(3) fails with EBUSY while SIGCHLD is not blocked, which is after the fork.
TEST_F(MeasurementChildTest, FailureAfterTheForkLeavesNoChildAndTheNextRunMayBegin) {
    block_child_signals(false);
    int count = 0;
    MeasurementChild child(
        event_.get(), {}, [&](const measure::Run&) { ++count; }, script("sleep 600"));
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

TEST_F(MeasurementChildTest, WithoutAProgramItDoesNotStart) {
    MeasurementChild child(
        event_.get(), {}, [](const measure::Run&) {}, std::nullopt);
    EXPECT_FALSE(child.start(false));
    EXPECT_FALSE(child.running());
}

TEST_F(MeasurementChildTest, DestroyedWhileItRunsLeavesNoProcess) {
    block_child_signals(true);
    {
        MeasurementChild child(
            event_.get(), {}, [](const measure::Run&) {}, script("sleep 600"));
        ASSERT_TRUE(child.start(false));
    }
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

} // namespace
} // namespace affinityd::events
