// SPDX-License-Identifier: Apache-2.0
#include "app/simulated.hpp"
#include "events/later_watch.hpp"
#include "turning.hpp"

namespace affinityd::events {
namespace {

using app::test::Machine;
using test::Turning;

/// So many that a turn of the loop is over before all were looked at.
TEST(LaterWatchTest, LooksAtAllWhoseTimeHasComeAtOnce) {
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
    EXPECT_TRUE(turning.until([&] { return known() == count; })) << known();
    EXPECT_TRUE(tasks.events().empty());
    EXPECT_EQ(machine.allowed(first + count - 1, first + count - 1), "2");
}

} // namespace
} // namespace affinityd::events
