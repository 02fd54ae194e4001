// SPDX-License-Identifier: Apache-2.0
// Renames of threads on this machine, with an enforcer that only records.
#include "simulated.hpp"

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

} // namespace
} // namespace affinityd::app
