// SPDX-License-Identifier: Apache-2.0
// A mask that somebody sets to what a task had from us until a moment ago looks like an inherited one.
#include "simulated.hpp"

#include <gtest/gtest.h>

namespace affinityd::app::test {

namespace {

class OwnMasks : public ::testing::Test {
  protected:
    OwnMasks() {
        machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\n");
        machine_.policy("unrelated", "match: {comm: unrelated}\n");
        machine_.process(10, "server");
        machine_.process(11, "server", "0-3", 10); // a worker
        machine_.thread(11, 12, "server", "0-3", 1, 0, 112);
    }
    /// An administrator's, until the daemon's end.
    void set_by_hand_and_expect_that_it_stays(Instance& instance) {
        machine_.process(11, "server", "2", 10);
        machine_.thread(11, 12, "server", "2", 1, 0, 112);
        instance.tasks().process_changed(11);
        for (int i = 0; i < 3; ++i)
            instance.pass();
        EXPECT_EQ(machine_.allowed(11, 11), "2");
        EXPECT_EQ(machine_.allowed(11, 12), "2");
        instance.stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-3");
        EXPECT_EQ(machine_.allowed(11, 11), "2");
        EXPECT_EQ(machine_.allowed(11, 12), "2");
    }
    Machine machine_;
};

TEST_F(OwnMasks, TheMaskOfAReleasedPolicySetByHandStays) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_EQ(machine_.allowed(11, 12), "2");
    ASSERT_TRUE(instance.release("server"));
    instance.finish();
    ASSERT_EQ(machine_.allowed(11, 12), "0-3");
    set_by_hand_and_expect_that_it_stays(instance);
}

TEST_F(OwnMasks, TheMaskOfARemovedPolicySetByHandStays) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    std::filesystem::remove(machine_.path("policies/server.yaml"));
    ASSERT_TRUE(instance.reload());
    instance.finish();
    ASSERT_EQ(machine_.allowed(11, 12), "0-3");
    set_by_hand_and_expect_that_it_stays(instance);
}

} // namespace

} // namespace affinityd::app::test
