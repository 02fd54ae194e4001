// SPDX-License-Identifier: Apache-2.0
// What becomes, at the end, of tasks that were born with one of our masks.
#include "app/inherited_restorer.hpp"
#include "simulated.hpp"

#include <algorithm>

namespace affinityd::app {
namespace {

/// A machine with a process whose mask we set and have put back: what it created meanwhile has it still.
class InheritedTest : public testing::Test {
  protected:
    InheritedTest()
        : root_(*host::Root::open(machine_.path())), journal_(*state::Journal::open("")), enforcer_(machine_),
          executor_(journal_, enforcer_), left_(root_, journal_, enforcer_, log_.log()) {
        machine_.process(10, "server", "2");
        machine_.process(20, "other");
        machine_.process(30, "another");
        const machine::TaskMask creator{{10, 100}, 10, "server"};
        EXPECT_TRUE(journal_.remember(creator, all_, CpuSet{2}, "server"));
        EXPECT_TRUE(journal_.confirm(creator, CpuSet{2}));
        EXPECT_TRUE(enforcer::took_effect(executor_.restore(creator, all_).applied.outcome));
        EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    }
    [[nodiscard]] InheritedRestorer restorer() {
        return {
            {root_, journal_, executor_, left_, log_.log()}, all_, [](const std::string&) { return false; }};
    }
    /// Descriptors of this process on the list of processes: a round has one more open than there were.
    [[nodiscard]] std::ptrdiff_t listings() const {
        const auto list = std::filesystem::canonical(machine_.path("proc"));
        return std::ranges::count_if(std::filesystem::directory_iterator("/proc/self/fd"),
                                     [&](const auto& entry) {
                                         std::error_code closed; // the iterator's own
                                         return std::filesystem::read_symlink(entry.path(), closed) == list;
                                     });
    }
    static bool out_of_time() { return true; }

    const CpuSet all_ = CpuSet::range(0, 3);
    test::Machine machine_;
    host::Root root_;
    test::ReadableLog log_;
    state::Journal journal_;
    test::SimulatedEnforcer enforcer_;
    enforcer::Executor executor_;
    LeftChildren left_;
};

TEST_F(InheritedTest, ATaskThatTheFirstRoundDidNotFindGetsItsOriginal) {
    auto job = restorer();
    const auto before = listings();
    ASSERT_FALSE(job.step(out_of_time));
    ASSERT_EQ(listings(), before + 1) << "the first round is under way";
    while (listings() > before)
        ASSERT_FALSE(job.step(out_of_time));
    machine_.process(50, "child", "2", 10); // its creator forked before it was put back
    while (!job.step(out_of_time)) {
    }
    EXPECT_EQ(machine_.allowed(50, 50), "0-3");
}

TEST_F(InheritedTest, AChildOfATaskThatWasPutBackGetsItsOriginalInALaterRound) {
    machine_.process(50, "child", "2", 10);
    auto job = restorer();
    const auto before = listings();
    for (int generation = 51; generation < 55; ++generation) {
        do {
            ASSERT_FALSE(job.step(out_of_time));
        } while (listings() > before);
        machine_.process(generation, "child", "2", generation - 1);
    }
    while (!job.step(out_of_time)) {
    }
    for (int pid = 50; pid < 55; ++pid)
        EXPECT_EQ(machine_.allowed(pid, pid), "0-3") << pid;
}

TEST_F(InheritedTest, WithoutATaskToPutBackThereAreTwoRounds) {
    auto job = restorer();
    const auto before = listings();
    unsigned rounds = 0;
    for (bool is_done = false, was_open = false; !is_done;) {
        is_done = job.step(out_of_time);
        const bool is_open = listings() > before;
        rounds += was_open && !is_open ? 1 : 0;
        was_open = is_open;
    }
    EXPECT_EQ(rounds, 2U);
    EXPECT_EQ(enforcer_.applied, 1U) << "nothing was changed but the creator, before";
}

} // namespace
} // namespace affinityd::app
