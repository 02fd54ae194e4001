// SPDX-License-Identifier: Apache-2.0
// This machine's own processes are looked at: the test itself, which is no server.
#include "app/sample_looks.hpp"
#include "readable_log.hpp"

#include <optional>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

namespace affinityd::app {
namespace {

class SampleLooksTest : public testing::Test {
  protected:
    void SetUp() override {
        auto root = host::Root::open();
        ASSERT_TRUE(root);
        root_.emplace(std::move(*root));
        policy::PolicySet set;
        set.policies.resize(2);
        set.policies[0].name = "moves";
        set.policies[0].steer = policy::Steer::tasks;
        set.policies[1].name = "stays";
        current_.world = std::make_shared<World>(std::move(set), machine::Machine());
        looks_.emplace(SampleLooks::Parts{*root_, current_, tasks_,
                                          [this](const locality::ReadCounts&) { ++answers_; }, log_.log()});
        looks_->ask(64);
    }
    KnownProcess& add(std::size_t policy) {
        auto& process = tasks_.insert({::getpid(), 1});
        process.policy = policy;
        return process;
    }
    /// Waits for an answer, however long it takes.
    void await_answer() {
        const auto before = answers_;
        for (pollfd item{looks_->fd(), POLLIN, 0}; answers_ == before; looks_->take())
            ASSERT_EQ(::poll(&item, 1, 60'000), 1);
    }
    [[nodiscard]] bool goes_on() const {
        return looks_->next_look() != SampleLooks::Clock::time_point::max();
    }

    std::optional<host::Root> root_;
    test::ReadableLog log_;
    Current current_;
    TaskTable tasks_;
    unsigned answers_ = 0;
    std::optional<SampleLooks> looks_;
};

TEST_F(SampleLooksTest, ANewProcessOfAPolicyThatMovesTasksIsLookedAtTwelveTimesHoweverLongThatTakes) {
    const auto before = SampleLooks::Clock::now();
    looks_->observe(add(0));
    EXPECT_TRUE(goes_on());
    EXPECT_GE(looks_->next_look(), before + SampleLooks::between_looks);
    for (unsigned i = 0; i < SampleLooks::looks_of_new; ++i) {
        looks_->look();
        EXPECT_TRUE(goes_on()) << i;
        looks_->look(); // it is time again, and the answer has not come: that is no second look
        await_answer();
    }
    looks_->look();
    EXPECT_FALSE(goes_on());
    looks_->observe(add(0));
    EXPECT_FALSE(goes_on()) << "it was new once";
}

TEST_F(SampleLooksTest, WhoseTasksStayIsLeftToThePasses) {
    looks_->observe(add(1));
    EXPECT_FALSE(goes_on());
}

TEST_F(SampleLooksTest, OfPassesThatFollowEachOtherAtOnceTheFirstLooksAndOneIsMadeUpFor) {
    add(1);
    const auto begun = SampleLooks::Clock::now();
    looks_->ask(64);
    EXPECT_FALSE(goes_on());
    looks_->ask(64);
    looks_->ask(64);
    if (SampleLooks::Clock::now() - begun < SampleLooks::between_passes) {
        EXPECT_GE(looks_->next_look(), begun + SampleLooks::between_passes);
        EXPECT_TRUE(goes_on());
    }
    await_answer();
    EXPECT_EQ(answers_, 1U);
    while (goes_on()) {
        std::this_thread::sleep_until(looks_->next_look());
        looks_->look();
        await_answer();
    }
    EXPECT_LE(answers_, 2U);
}

TEST_F(SampleLooksTest, OnceConnectionsAreSampledAgainTheNextPassLooks) {
    add(1);
    looks_->ask(64);
    await_answer();
    looks_->ask(0);
    looks_->ask(64);
    await_answer();
    EXPECT_FALSE(goes_on());
}

TEST_F(SampleLooksTest, WhoIsGoneIsNotLookedAt) {
    looks_->observe(add(0));
    tasks_.erase(::getpid());
    looks_->look();
    EXPECT_FALSE(goes_on());
}

TEST_F(SampleLooksTest, NobodyIsLookedAtOnceConnectionsAreNotToBeSampled) {
    looks_->observe(add(0));
    looks_->ask(0);
    looks_->look();
    EXPECT_FALSE(goes_on());
}

} // namespace
} // namespace affinityd::app
