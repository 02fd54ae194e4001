// SPDX-License-Identifier: Apache-2.0
// What is made of samples of connections.
#include "app/local_reads.hpp"
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using test::Instance;
using test::Machine;

/// Two processes of one policy and one of another, on four CPUs, two to a core.
class LocalReadsTest : public testing::Test {
  protected:
    LocalReadsTest() {
        machine_.policy("web", "match: {comm: web}\ncpus: \"0-3\"\n");
        machine_.policy("other", "match: {comm: other}\ncpus: \"0-3\"\n");
        machine_.process(10, "web");
        machine_.process(11, "web");
        machine_.process(20, "other");
        EXPECT_TRUE(daemon_.manager().start());
        daemon_.pass();
        EXPECT_EQ(daemon_.tasks().table().processes().size(), 3U);
        root_.emplace(std::move(*host::Root::open(machine_.path())));
        reads_.emplace(
            LocalReads::Parts{*root_, daemon_.manager().queues().current(), daemon_.tasks().table()});
    }
    void note(int pid, std::optional<unsigned> arrival, unsigned reader, std::uint64_t samples) {
        reads_->note({.counts = {{.pid = pid, .arrival = arrival, .reader = reader, .reads = samples}}});
        work_out();
    }
    void work_out() {
        while (!reads_->step([] { return true; })) { // in the smallest slices
        }
    }
    Machine machine_;
    Instance daemon_{machine_};
    std::optional<host::Root> root_;
    std::optional<LocalReads> reads_;
};

TEST_F(LocalReadsTest, NothingIsSaidOfAFewSamples) {
    note(10, 0, 0, LocalReads::enough - 1);
    EXPECT_FALSE(reads_->of_policy("web"));
    note(11, 2, 0, 1);
    const auto local = reads_->of_policy("web");
    ASSERT_TRUE(local);
    EXPECT_EQ(local->samples, LocalReads::enough);
    EXPECT_DOUBLE_EQ(local->same.cpu, 0.95);
    EXPECT_FALSE(reads_->of_policy("other"));
    EXPECT_FALSE(reads_->of_policy("none such"));
}

TEST_F(LocalReadsTest, WhoIsNotUnderPolicyDoesNotCount) {
    note(99, 0, 0, 1000);
    note(10, std::nullopt, 0, 30);
    const auto local = reads_->of_policy("web");
    EXPECT_FALSE(local) << "of none is it known where it arrived";
    note(10, 1, 1, 20);
    ASSERT_TRUE(reads_->of_policy("web"));
    EXPECT_EQ(reads_->of_policy("web")->unknown, 30U);
    EXPECT_DOUBLE_EQ(reads_->of_policy("web")->same.core, 1);
}

TEST_F(LocalReadsTest, OldSamplesCountLessAndLess) {
    for (int i = 0; i < 100; ++i)
        note(10, 0, 3, 100); // far away
    EXPECT_LE(reads_->of_policy("web")->samples, LocalReads::most_samples);
    EXPECT_DOUBLE_EQ(reads_->of_policy("web")->same.core, 0);
    for (int i = 0; i < 100; ++i)
        note(10, 0, 0, 100);
    EXPECT_GT(reads_->of_policy("web")->same.cpu, 0.98);
}

TEST_F(LocalReadsTest, WhatHasEndedIsForgotten) {
    note(10, 0, 0, 50);
    note(11, 0, 3, 50);
    machine_.end(10);
    daemon_.pass();
    work_out();
    const auto local = reads_->of_policy("web");
    ASSERT_TRUE(local);
    EXPECT_EQ(local->samples, 50U);
    EXPECT_DOUBLE_EQ(local->same.cpu, 0);
    machine_.end(11);
    daemon_.pass();
    work_out();
    EXPECT_FALSE(reads_->of_policy("web"));
}

TEST_F(LocalReadsTest, ALaterProcessOfTheSameNumberInheritsNothing) {
    note(10, 0, 3, 50);
    machine_.end(10);
    machine_.process(10, "web", "0-3", 1, 0, 200);
    daemon_.pass();
    note(10, 0, 0, 30);
    ASSERT_TRUE(reads_->of_policy("web"));
    EXPECT_EQ(reads_->of_policy("web")->samples, 30U);
    EXPECT_DOUBLE_EQ(reads_->of_policy("web")->same.cpu, 1);
    machine_.end(10);
    machine_.process(10, "web", "0-3", 1, 0, 300);
    daemon_.pass();
    work_out();
    EXPECT_FALSE(reads_->of_policy("web"));
}

TEST_F(LocalReadsTest, APolicyThatIsRemovedTakesItsSamplesAlong) {
    note(10, 0, 0, 50);
    note(20, 0, 0, 50);
    machine_.policy("web", "match: {comm: nobody}\ncpus: \"0-3\"\n");
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    daemon_.pass();
    work_out();
    EXPECT_FALSE(reads_->of_policy("web"));
    EXPECT_TRUE(reads_->of_policy("other")) << "whatever its place in the set is now";
}

TEST_F(LocalReadsTest, WhatIsNotWantedIsForgotten) {
    note(10, 0, 0, 100);
    EXPECT_TRUE(reads_->of_policy("web"));
    reads_->forget();
    EXPECT_FALSE(reads_->of_policy("web"));
    work_out();
    EXPECT_FALSE(reads_->of_policy("web"));
}

TEST_F(LocalReadsTest, WhatHasChangedIsKeptEachHourAndAllElseEachDay) {
    note(10, 0, 0, 75);
    note(10, 0, 3, 25);
    const auto begun = LocalReads::Clock::now();
    const auto kept = [&](std::chrono::minutes after) {
        return reads_->take_record(begun + after, after.count() * 60);
    };
    using std::chrono::minutes;
    EXPECT_FALSE(kept(minutes(59)));
    const auto record = kept(minutes(61));
    ASSERT_TRUE(record);
    EXPECT_EQ(record->kind, "locality");
    EXPECT_EQ(record->time, 3660);
    EXPECT_EQ(record->policies, "web");
    EXPECT_EQ(record->outcome, "done");
    EXPECT_EQ(record->reason, "75 % same core, 75 % by chance (100 samples)");
    EXPECT_NE(record->detail.find("\"samples\":100"), std::string::npos) << record->detail;
    EXPECT_FALSE(kept(minutes(122))) << "nothing has changed";
    EXPECT_TRUE(kept(minutes(61 + 24 * 60)));
    note(10, 0, 3, 25);
    EXPECT_FALSE(kept(minutes(62 + 24 * 60)));
    EXPECT_TRUE(kept(minutes(122 + 24 * 60)));
    EXPECT_FALSE(kept(minutes(122 + 24 * 60)));
}

TEST_F(LocalReadsTest, AProcessIsExplainedByItsOwnSamples) {
    note(10, 0, 0, 30);
    note(11, 0, 3, 30);
    const auto id = daemon_.tasks().table().find(10)->id;
    status::ProcessExplanation told;
    reads_->explain(id, told);
    ASSERT_TRUE(told.receiving.local);
    EXPECT_EQ(told.receiving.local->samples, 30U);
    EXPECT_DOUBLE_EQ(told.receiving.local->same.cpu, 1);
    EXPECT_DOUBLE_EQ(told.receiving.local->chance.cpu, 1) << "all packets arrive there";
    ASSERT_EQ(told.receiving.arrivals.size(), 1U);
    EXPECT_EQ(told.receiving.arrivals[0].cpu, 0U);
    status::ProcessExplanation other;
    reads_->explain(TaskId{id.tid, id.start_time + 1}, other);
    EXPECT_FALSE(other.receiving.local) << "a later process of the same number";
}

} // namespace
} // namespace affinityd::app
