// SPDX-License-Identifier: Apache-2.0
// Renames of threads on this machine, with an enforcer that only records.
#include "simulated.hpp"

#include <array>
#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace affinityd::app {
namespace {

constexpr std::uint64_t stale = 1; ///< start time of a thread that ended long ago

class LiveTasksTest : public testing::Test {
  protected:
    LiveTasksTest() {
        ::prctl(PR_SET_NAME, "affinityd-live");
        machine_.policy("live", "match: {comm: affinityd-live}\nbind: set\n");
        Settings settings;
        settings.policy_folders = {machine_.policies()};
        settings.runtime_dir = machine_.path("run");
        settings.dry_run = true;
        manager_ = std::make_unique<Manager>(
            Manager::Parts{root_, journal_, *enforcer_, systemd_, log_.log(), settings});
    }
    /// As known, this process's main thread is one of the same number that ended unnoticed.
    void recycle() {
        auto* known = manager_->tasks().table().find(::getpid());
        ASSERT_NE(known, nullptr);
        known->threads.erase(::getpid());
        known->threads.insert({::getpid(), stale});
    }
    [[nodiscard]] std::uint64_t known_start() {
        return manager_->tasks().table().find(::getpid())->threads.find(::getpid())->id.start_time;
    }
    test::Machine machine_;
    host::Root root_ = *host::Root::open("/");
    test::ReadableLog log_;
    state::Journal journal_ = *state::Journal::open("");
    test::SimulatedSystemd systemd_;
    std::unique_ptr<enforcer::Enforcer> enforcer_ = enforcer::make_recording_enforcer();
    std::unique_ptr<Manager> manager_;
};

TEST_F(LiveTasksTest, ARenamedThreadIsReadAgainUntilAPassThatBeganAfterEventsWereLostHasEnded) {
    ASSERT_TRUE(manager_->start()) << log_.text();
    auto& tasks = manager_->tasks();
    tasks.process_changed(::getpid());
    const auto start = known_start();
    ASSERT_NE(start, stale);

    recycle();
    tasks.thread_renamed(::getpid(), ::getpid(), "name");
    EXPECT_EQ(known_start(), stale) << "its name came with the event: nothing is read";

    tasks.begin_pass(); // it looks at this process before the events are lost
    manager_->events_lost();
    while (!tasks.end_pass([] { return false; })) {
    }
    tasks.process_changed(::getpid());
    recycle();
    tasks.thread_renamed(::getpid(), ::getpid(), "name");
    EXPECT_EQ(known_start(), start) << "that pass may have looked too soon";

    tasks.begin_pass();
    while (!tasks.end_pass([] { return false; })) {
    }
    tasks.process_changed(::getpid());
    recycle();
    tasks.thread_renamed(::getpid(), ::getpid(), "name");
    EXPECT_EQ(known_start(), stale) << "all is known again";
}

/// On a busy machine a command line comes later than the daemon waits for it.
TEST_F(LiveTasksTest, AProgramWhoseCommandLineComesLateSettlesAsAnyOther) {
    machine_.policy("live", "match: {cmdline: \"*app-test*\"}\nbind: set\nsettle: 5s\n");
    ASSERT_TRUE(manager_->start()) << log_.text();
    auto& tasks = manager_->tasks();
    auto& lines = *tasks.sources().command_lines();
    // As the loop does when answers come late, which they may here, too.
    const auto looks_until = [&](const auto& is_so) {
        for (int tries = 0; tries < 1000 && !is_so(); ++tries) {
            pollfd answer{lines.fd(), POLLIN, 0};
            ::poll(&answer, 1, 10);
            static_cast<void>(lines.take_late());
            tasks.process_changed(::getpid());
        }
        return is_so();
    };
    const auto known = [&] { return tasks.table().find(::getpid()); };
    ASSERT_TRUE(looks_until([&] { return known() != nullptr; }));
    known()->settling.reset(); // it has been there for long

    std::vector<host::Fd> writers;
    for (int i = 0; i < 2; ++i) { // so many of a user that nothing more is read for that one
        std::array<int, 2> pipe{};
        ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
        writers.emplace_back(pipe[1]);
        EXPECT_EQ(lines.read({1 << 29, stale}, host::Fd(pipe[0]), 16, [] { return ::getuid(); }).code,
                  EAGAIN);
    }
    ProcessChange executed;
    executed.is_executed = true;
    tasks.process_changed(::getpid(), executed);
    EXPECT_FALSE(known()->settling) << "it is not known which program it is";

    writers.clear();
    EXPECT_TRUE(looks_until([&] { return known()->settling.has_value(); }))
        << "it runs another program, which counts its CPUs";
}

} // namespace
} // namespace affinityd::app
