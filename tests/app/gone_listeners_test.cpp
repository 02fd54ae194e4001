// SPDX-License-Identifier: Apache-2.0
#include "app/gone_listeners.hpp"
#include "simulated.hpp"

#include <cstdint>
#include <tuple>

namespace affinityd::app {
namespace {

using planner::ListenerCpu;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(GoneListeners, AreGoneForGoodWhenNobodyWasSeenWithThemForAWhile) {
    const ListenerCpu handed_on{101, 1, 0, 6, 80}, closed{102, 2, 0, 6, 80};
    GoneListeners gone{minutes(1)};
    GoneListeners::Clock::time_point now{};
    const auto round = [&](bool both) {
        const bool first = both && gone.see_gone(handed_on, now);
        const bool second = gone.see_gone(closed, now);
        gone.end_round();
        now += seconds(20);
        return std::pair(first, second);
    };
    EXPECT_EQ(round(true), std::pair(false, false));
    EXPECT_EQ(round(true), std::pair(false, false));
    EXPECT_TRUE(gone.rests(closed, now)) << "nobody looks again so soon";
    EXPECT_EQ(round(false), std::pair(false, false)) << "a new worker has the first";
    EXPECT_FALSE(gone.rests(closed, now)) << "now it is time";
    EXPECT_FALSE(gone.rests(handed_on, now)) << "it was there";
    EXPECT_EQ(round(true), std::pair(false, true));
    EXPECT_EQ(round(true), std::pair(false, true));
}

/// A crash loop of a server with many workers must not fill the undo journal.
TEST(GoneListeners, OfAPolicyThatSteersKeepTheirRecordsForThatLongOnly) {
    const test::Machine machine;
    machine.policy("web", "match: {comm: web}\naffinity: full\nnics: [eth0]\nsteer: accept\n");
    test::Instance instance(machine);
    const ListenerCpu closed{102, 2, 0, 6, 80};
    ASSERT_TRUE(instance.journal().put(closed, {CpuSet{}, CpuSet{1}, CpuSet{1}, "web"}));
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    instance.pass();
    EXPECT_TRUE(instance.journal().contains(closed)) << "it may only be handed on";
    instance.manager().steering().listeners().records().settle(closed, Listeners::Clock::now() + minutes(1));
    EXPECT_FALSE(instance.journal().contains(closed));
}

TEST(ListenerRecords, WhoIsOutOfItsPolicyIsPutBackWhenThatLasts) {
    const test::Machine machine;
    machine.policy("web", "match: {comm: web}\naffinity: full\nnics: [eth0]\nsteer: accept\n");
    machine.process(50, "renamed");
    machine.process(60, "web");
    test::Instance instance(machine);
    const auto record = [](int pid) {
        return ListenerCpu{100 + static_cast<std::uint64_t>(pid), pid, 1, 6, 80};
    };
    const auto left = record(50), stays = record(60), ended = record(70);
    for (const auto& one : {left, stays, ended})
        ASSERT_TRUE(instance.journal().put(one, {CpuSet{}, CpuSet{1}, CpuSet{1}, "web"}));
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    auto& records = instance.manager().steering().listeners().records();
    const auto begun = ListenerRecords::Clock::now();
    const auto settle_after = [&](seconds time) {
        for (const auto& one : {left, stays, ended})
            records.settle(one, begun + time);
        return records.end_round();
    };
    EXPECT_TRUE(settle_after(seconds(0))) << "there is another look soon";
    EXPECT_TRUE(settle_after(ListenerRecords::patience - seconds(1)));
    EXPECT_TRUE(instance.journal().contains(left)) << "it may be a reload";
    std::ignore = settle_after(ListenerRecords::patience + seconds(1));
    EXPECT_FALSE(instance.journal().contains(left));
    EXPECT_TRUE(instance.journal().contains(stays));
    EXPECT_TRUE(instance.journal().contains(ended)) << "who has ended may have handed it on";
}

/// Whoever opens and closes listeners all the time does not fill the memory.
TEST(ListenerRecords, OfAPolicyAreLimited) {
    const test::Machine machine;
    machine.policy("web", "match: {comm: web}\naffinity: full\nnics: [eth0]\nsteer: accept\n");
    test::Instance instance(machine);
    ASSERT_TRUE(instance.manager().start());
    auto& listeners = instance.manager().steering().listeners();
    for (std::uint64_t cookie = 1; cookie <= ListenerRecords::most_of_policy; ++cookie) {
        if (cookie % 1024 == 0) {
            std::ignore = listeners.without_target();
            ASSERT_FALSE(listeners.records().is_full("web")) << cookie;
        }
        ASSERT_TRUE(instance.journal().put(ListenerCpu{cookie, 2, 0, 6, 80},
                                           {CpuSet{}, CpuSet{1}, CpuSet{1}, "web"}));
    }
    std::ignore = listeners.without_target();
    EXPECT_TRUE(listeners.records().is_full("web"));
    EXPECT_FALSE(listeners.records().is_full("other"));
}

} // namespace
} // namespace affinityd::app
