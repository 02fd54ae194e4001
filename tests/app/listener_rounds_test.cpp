// SPDX-License-Identifier: Apache-2.0
#include "app/listener_rounds.hpp"
#include "simulated.hpp"

#include <cerrno>
#include <cstdint>
#include <memory>
#include <ranges>

namespace affinityd::app {
namespace {

using planner::ListenerCpu;

const auto no_time = [] { return true; };

ListenerCpu listener(std::uint64_t cookie) { return {cookie, static_cast<int>(cookie), 0, 6, 80}; }

/// Listeners of a policy that has gone, whose locks somebody holds.
class RoundsOverListeners : public testing::Test {
  protected:
    RoundsOverListeners() : instance_(machine_) {
        machine_.policy("other", "match: {comm: unrelated}\n");
        instance_.enforcer().unreadable_with = EBUSY;
        for (const auto cookie : std::views::iota(std::uint64_t{1}, std::uint64_t{4})) {
            EXPECT_TRUE(instance_.journal().put(listener(cookie), {CpuSet{}, CpuSet{1}, CpuSet{1}, "web"}));
            instance_.enforcer().unreadable.insert(listener(cookie));
        }
        EXPECT_TRUE(instance_.manager().start());
    }
    [[nodiscard]] ListenerRounds& rounds() { return instance_.manager().steering().rounds(); }
    test::Machine machine_;
    test::Instance instance_;
};

TEST_F(RoundsOverListeners, AreUnderWayOneAtATime) {
    const auto first = rounds().next(), second = rounds().next();
    EXPECT_FALSE(first->step(no_time));
    const auto read = instance_.enforcer().read;
    for (int slice = 0; slice < 10; ++slice)
        EXPECT_FALSE(second->step(no_time));
    EXPECT_EQ(instance_.enforcer().read, read) << "it waits";
    int slices = 0;
    while (!first->step(no_time))
        ASSERT_LT(++slices, 10);
    EXPECT_FALSE(second->step(no_time)) << "the first has ended, though it is still there";
    EXPECT_GT(instance_.enforcer().read, read + 2);
}

TEST_F(RoundsOverListeners, ThatTakeTurnsForgetNothing) {
    for (int turn = 0; turn < 3; ++turn) {
        const auto first = rounds().next(), second = rounds().next();
        bool first_ends = false, second_ends = false;
        for (int slice = 0; slice < 20; ++slice) {
            if (slice > 0 && !first_ends) first_ends = first->step(no_time);
            if (!second_ends) second_ends = second->step(no_time);
        }
        EXPECT_TRUE(first_ends && second_ends);
    }
    EXPECT_EQ(instance_.log().times("could not be put back"), 3U) << instance_.log().text();
}

TEST_F(RoundsOverListeners, ThatAreDroppedKeepNobodyWaiting) {
    auto dropped = rounds().next();
    EXPECT_FALSE(dropped->step(no_time));
    const auto next = rounds().next();
    EXPECT_FALSE(next->step(no_time));
    const auto read = instance_.enforcer().read;
    dropped.reset();
    EXPECT_FALSE(next->step(no_time));
    EXPECT_GT(instance_.enforcer().read, read);
}

TEST_F(RoundsOverListeners, WaitUntilTheyBegin) {
    EXPECT_FALSE(rounds().does_one_wait());
    const auto first = rounds().next();
    EXPECT_TRUE(rounds().does_one_wait());
    EXPECT_FALSE(first->step(no_time));
    EXPECT_FALSE(rounds().does_one_wait());
    const auto second = rounds().next(), third = rounds().next();
    EXPECT_FALSE(second->step(no_time));
    EXPECT_TRUE(rounds().does_one_wait());
}

} // namespace
} // namespace affinityd::app
