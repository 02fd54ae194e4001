// SPDX-License-Identifier: Apache-2.0
#include "app/simulated.hpp"
#include "events/later_watch.hpp"
#include "events/slices.hpp"
#include "turning.hpp"

namespace affinityd::events {
namespace {

using app::test::Machine;
using test::Turning;

/// So many that several turns of the loop are over before all were looked at.
TEST(LaterWatchTest, LooksAtAllWhoseTimeHasComeInTurnsWithOtherWork) {
    constexpr int first = 5000, count = 1000;
    Machine machine;
    machine.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\n");
    app::test::Instance instance(machine);
    ASSERT_TRUE(instance.manager().start());
    const Turning turning;
    auto& tasks = instance.manager().tasks();
    LaterWatch watch(tasks);
    ASSERT_TRUE(watch.add_to(turning.event()));
    for (int pid = first; pid < first + count; ++pid) {
        machine.process(pid, "server");
        tasks.events().later().look_at(pid, 0, app::LaterLooks::Clock::now());
    }
    const auto known = [&] {
        watch.follow(); // as the loop does after each turn
        return tasks.table().processes().size();
    };
    ASSERT_TRUE(turning.until([&] { return known() > 0; }));

    int slices = 0;
    Slices pass({[&](const auto&) { return ++slices, false; }, [] { return false; }, [] {}});
    pass.add_to(turning.event());
    pass.begin();
    int turns = 0;
    for (; known() < count && turns < 3 * count; ++turns)
        sd_event_run(turning.event(), 0);
    EXPECT_EQ(known(), count);
    EXPECT_TRUE(tasks.events().empty());
    EXPECT_TRUE(tasks.step([] { return false; })) << "what a busy machine had left";
    EXPECT_GE(slices, turns / 3);
    EXPECT_EQ(machine.allowed(first + count - 1, first + count - 1), "2");
}

} // namespace
} // namespace affinityd::events
