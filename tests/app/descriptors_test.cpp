// SPDX-License-Identifier: Apache-2.0
// Process events while no descriptor is left: what cannot be looked at is not gone, and a pass looks again.
#include "simulated.hpp"
#include "support/no_descriptors_left.hpp"

namespace affinityd::app {
namespace {

using affinityd::test::NoDescriptorsLeft;

class DescriptorsTest : public testing::Test {
  protected:
    void start(const std::string& match) {
        machine_.policy("server", "match: {" + match + "}\ncpus: \"2\"\nbind: set\n");
        machine_.process(10, "server");
        machine_.tree().file("proc/10/cmdline", std::string("server\0-x\0", 10));
        instance_.reset();
        instance_ = std::make_unique<test::Instance>(machine_);
        ASSERT_TRUE(instance_->manager().start());
        instance_->pass();
        ASSERT_EQ(machine_.allowed(10, 10), "2");
        instance_->manager().work().on_work(
            [this](Work::Urgency urgency) { wanted_ += urgency == Work::Urgency::soon ? 1U : 0U; });
    }
    [[nodiscard]] Tasks& tasks() { return instance_->tasks(); }
    test::Machine machine_;
    std::unique_ptr<test::Instance> instance_;
    unsigned wanted_ = 0; ///< passes
};

TEST_F(DescriptorsTest, AProcessThatCannotBeReadIsPlacedByThePassThatItsEventAskedFor) {
    start("comm: server");
    machine_.process(20, "server");
    {
        const NoDescriptorsLeft none;
        tasks().process_changed(20);
    }
    EXPECT_FALSE(instance_->knows(20));
    EXPECT_EQ(wanted_, 1U);
    instance_->pass();
    EXPECT_EQ(machine_.allowed(20, 20), "2");
}

TEST_F(DescriptorsTest, AProcessThatHasGoneAsksForNoPass) {
    start("comm: server");
    tasks().process_changed(999);
    tasks().thread_changed(10, 999);
    EXPECT_EQ(wanted_, 0U);
}

TEST_F(DescriptorsTest, AKnownProcessThatCannotBeReadStaysUnderItsPolicy) {
    start("comm: server");
    {
        const NoDescriptorsLeft none;
        tasks().process_changed(10);
    }
    EXPECT_TRUE(instance_->knows(10));
    EXPECT_EQ(wanted_, 1U);
    EXPECT_EQ(machine_.allowed(10, 10), "2");
}

TEST_F(DescriptorsTest, AThreadThatCannotBeReadIsPlacedByThePassThatItsEventAskedFor) {
    start("comm: server");
    machine_.thread(10, 11, "worker", "0-3", 1, 0, 101);
    {
        const NoDescriptorsLeft none;
        tasks().thread_changed(10, 11);
    }
    EXPECT_EQ(wanted_, 1U);
    instance_->pass();
    EXPECT_EQ(machine_.allowed(10, 11), "2");
}

TEST_F(DescriptorsTest, AProcessStaysWhatItIsWhileItsThreadsCannotBeListed) {
    start("comm: server");
    machine_.thread(10, 11, "worker", "2", 1, 0, 101);
    bool is_read = false;
    for (unsigned spare = 0; !is_read && spare < 16; ++spare) {
        wanted_ = 0;
        {
            const NoDescriptorsLeft few(spare);
            tasks().process_changed(10);
        }
        is_read = tasks().table().find(10)->threads.find(11) != nullptr;
        EXPECT_EQ(wanted_ > 0, !is_read) << spare << " left";
        EXPECT_EQ(tasks().table().find(10)->threads.size(), is_read ? 2U : 1U) << spare << " left";
    }
    EXPECT_TRUE(is_read);
}

TEST_F(DescriptorsTest, AProcessIsNotTakenFromItsPolicyBecauseItsFilesCannotBeOpened) {
    start("cmdline: \"server -x\"");
    const auto placed = instance_->enforcer().applied;
    for (unsigned spare = 0; spare < 8; ++spare) {
        wanted_ = 0;
        const NoDescriptorsLeft few(spare);
        tasks().process_changed(10);
        EXPECT_TRUE(spare >= 2 || wanted_ > 0) << spare << " left: the folder and a file in it take two";
        ASSERT_TRUE(instance_->knows(10)) << spare << " left";
    }
    EXPECT_EQ(wanted_, 0U) << "that is enough";
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_EQ(instance_->enforcer().applied, placed);
}

TEST_F(DescriptorsTest, APassTakesNoProcessFromItsPolicyBecauseItsFilesCannotBeOpened) {
    for (const char* match : {"comm: server", "cmdline: \"server -x\""}) {
        start(match);
        for (unsigned spare = 0; spare < 8; ++spare) {
            const NoDescriptorsLeft few(spare);
            instance_->pass();
            ASSERT_TRUE(instance_->knows(10)) << match << ", " << spare << " left";
        }
        EXPECT_EQ(machine_.allowed(10, 10), "2");
        machine_.end(10);
        instance_->pass();
        EXPECT_FALSE(instance_->knows(10)) << "it has gone now";
    }
}

} // namespace
} // namespace affinityd::app
