// SPDX-License-Identifier: Apache-2.0
#include "app/world.hpp"
#include "planner/closeness.hpp"

#include <gtest/gtest.h>

namespace affinityd::app {
namespace {

policy::PolicySet measured_policy() {
    policy::PolicySet set;
    set.policies.resize(1);
    set.policies[0].name = "p";
    set.policies[0].together = policy::Together::measured;
    return set;
}

TEST(World, AReloadLosesNoLatencies) {
    machine::Machine machine;
    machine.topology.online = CpuSet::range(0, 1);
    topology::Latencies measured(machine.topology.online);
    measured.set(0, 1, 50);
    const auto matrix = std::make_shared<const machine::LatencyMatrix>(std::move(measured));
    World before(measured_policy(), machine), after(measured_policy(), machine);
    before.update({matrix, "", 1});
    after.take_over(before);
    ASSERT_NE(after.placements().closeness, nullptr);
    EXPECT_EQ(after.placements().closeness->matrix(), matrix);
    EXPECT_EQ(after.machine().latencies.time, 1) << "they are not read again";
}

} // namespace
} // namespace affinityd::app
